// Nothing that users without the right send makes a broadcast appear in LOG, and each entry of a
// batch acts as the user of its own Authorization.
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { SignJWT } from "jose"
import { afterAll, assert, beforeAll, it } from "vitest"
import { basic, call } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const secret = "a_secret_that_the_site_shares_with_Bellcast"
const module = `export default {
  authenticate: ({ scheme, token }) =>
    Promise.resolve(scheme === "acme" ? { user: token } : undefined)
}`

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin
let cwd = ""
let signed = ""
let signedPublisher = ""

const tokenOf = (sub: string) =>
  new SignJWT({ sub, aud: "bellcast" })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret))

beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), "bellcast-"))
  await writeFile(join(cwd, "acme.mjs"), module)
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({
    natsUrl: nats.url,
    cwd,
    roles: "gateway,projection",
    env: {
      BELLCAST_AUTH_POLICIES: "acme=./acme.mjs signed basicauth",
      BELLCAST_AUTH_SIGNED_SECRETS: secret,
      BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
      BELLCAST_CHANNEL_WRITE_PRINCIPALS: "signed:publisher news*=acme:editor",
      // Else the requests of strangers would end at this limit, and not at their rights.
      BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
    }
  })
  admin = await connectAdmin(nats.url)
  signed = `Bearer ${await tokenOf("ann")}`
  signedPublisher = `Bearer ${await tokenOf("publisher")}`
})
afterAll(async () => {
  await admin?.[Symbol.asyncDispose]()
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
  await rm(cwd, { recursive: true, force: true })
})

const broadcasts = async () => {
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG", {
    subjects_filter: "bellcast.cmd.broadcast.>"
  })
  return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
}

const send = (
  method: string,
  path: string,
  authorization: string | undefined,
  body?: unknown,
  headers: Record<string, string> = {}
) =>
  call(service.url, method, path, undefined, body, {
    ...headers,
    ...(authorization === undefined ? {} : { authorization })
  })

const broadcast = { data: { title: "Hello" } }

const channels = ["news", "new", "%6Eews", "news%20eu", "n%65ws", "other", "*", "news*", "%3E"]
const paths = [
  ...channels.map((each) => `/channels/${each}`),
  ...["/channels/news/", "/channels//news", "/channels/news/broadcasts/1", "/channels/news%2Feu"],
  ...["/channels/./news", "/channels/news?_method=POST", "/batch", "/subscriptions"],
  "/channels/news/registration"
]
const overrides: Array<Record<string, string>> = [
  {},
  { "x-http-method-override": "POST" },
  { "x-forwarded-user": "publisher", "x-forwarded-for": "127.0.0.1" },
  { "x-original-url": "/v1/channels/news", "x-user": "signed:publisher" },
  { "idempotency-key": "once" },
  { "bellcast-publisher": "signed:publisher", "bellcast-redrives": "1" }
]
/** Only built inside the property: the tokens are made before the tests. */
const requests = () => {
  const strangers = [
    undefined,
    signed,
    basic("publisher"),
    basic("signed:publisher"),
    basic("acme:editor"),
    "acme publisher",
    "acme signed:publisher",
    "acme group:acme:editor",
    `${signedPublisher.slice(0, -4)}AAAA`,
    "Bearer publisher"
  ]
  const request = fc.record({
    method: fc.constantFrom("POST", "PUT", "GET", "HEAD", "DELETE", "OPTIONS", "PATCH"),
    path: fc.constantFrom(...paths),
    authorization: fc.constantFrom(...strangers),
    headers: fc.constantFrom(...overrides)
  })
  return { request, strangers }
}
interface Request {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** The requests in one batch, each with the headers of its own. */
const asBatch = (all: ReadonlyArray<Request>, outer: string | undefined) =>
  send("POST", "/batch", outer, {
    requests: all.map(({ authorization, headers, method, path }) => ({
      method: method === "OPTIONS" ? "POST" : method,
      path: `/v1${path}`,
      headers: { ...headers, ...(authorization === undefined ? {} : { authorization }) },
      body: broadcast
    }))
  })

it("lets nobody without the right put a broadcast into LOG", { timeout: 60_000 }, async () => {
  // Those with the right can, on the channels that are theirs: else nothing below could fail.
  assert.equal((await send("POST", "/channels/news", signedPublisher, broadcast)).status, 202)
  assert.equal((await send("POST", "/channels/news-eu", "acme editor", broadcast)).status, 202)
  assert.equal((await send("POST", "/channels/other", "acme editor", broadcast)).status, 403)
  const before = await broadcasts()
  assert.equal(before, 2)
  const { request, strangers } = requests()
  for (const path of channels)
    for (const authorization of strangers) {
      const { status } = await send("POST", `/channels/${path}`, authorization, broadcast)
      assert.include([401, 403], status, `${path} ${authorization}`)
    }
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 8 }),
      fc.constantFrom(...strangers),
      async (sequence, outer) => {
        for (const { authorization, headers, method, path } of sequence) {
          const body = ["GET", "HEAD"].includes(method) ? undefined : broadcast
          await send(method, path, authorization, body, headers)
        }
        await asBatch(sequence, outer)
        assert.equal(await broadcasts(), before)
      }
    ),
    { numRuns: 25 }
  )
})

it("shows the status of a broadcast to publishers of its channel alone", async () => {
  const idOn = async (channel: string) => {
    const { headers } = await send("POST", `/channels/${channel}`, signedPublisher, broadcast)
    return headers.get("location")?.split("/").at(-1)
  }
  const path = `/channels/news/broadcasts/${await idOn("news")}`
  const statuses = async (authorization: string | undefined) => {
    const direct = (await send("GET", path, authorization)).status
    const head = (await send("HEAD", path, authorization)).status
    const inner = [{ path: `/v1${path}` }]
    const batch = await send("POST", "/batch", authorization, { requests: inner })
    return [direct, head, batch.body.responses[0].status]
  }
  assert.deepEqual(await statuses(signedPublisher), [200, 200, 200])
  assert.deepEqual(await statuses("acme editor"), [200, 200, 200])
  assert.deepEqual(await statuses("acme reader"), [403, 403, 403])
  assert.deepEqual(await statuses(signed), [403, 403, 403])
  assert.deepEqual(await statuses(undefined), [401, 401, 401])
  // By the path of a channel that is his, an editor does not see the broadcasts of another.
  const through = `/channels/news/broadcasts/${await idOn("other")}`
  assert.equal((await send("GET", through, "acme editor")).status, 404)
})

it("acts in each entry of a batch as the user of that entry", async () => {
  const users = ["acme bob", signed, basic("ann"), "acme ann", signedPublisher]
  const stored = users.map(() => push.subscribe().subscription)
  const put = await send("POST", "/batch", users[0], {
    requests: users.map((authorization, i) => ({
      method: "POST",
      path: "/v1/subscriptions",
      headers: { authorization },
      body: { data: stored[i] }
    }))
  })
  const statusesOf = ({ body }: { readonly body: unknown }) =>
    (body as { responses: Array<{ status: number }> }).responses.map(({ status }) => status)
  assert.deepEqual(
    statusesOf(put),
    users.map(() => 201)
  )
  const endpointsOf = (data: ReadonlyArray<{ push: { endpoint: string } }> | undefined) =>
    JSON.stringify(data ?? [])
  for (const [i, authorization] of users.entries()) {
    const own = endpointsOf((await send("GET", "/subscriptions", authorization)).body.data)
    for (const [j, { endpoint }] of stored.entries())
      assert.equal(own.includes(endpoint), i === j, `${i} ${j}`)
  }
  // Wrong credentials and none are nobody, not the user of the batch or of the entry before.
  const mixed = await send("POST", "/batch", signedPublisher, {
    requests: [
      { method: "POST", path: "/v1/channels/news", body: broadcast },
      { path: "/v1/subscriptions", headers: { authorization: "Bearer nonsense" } },
      { path: "/v1/subscriptions", headers: { authorization: "" } },
      {
        method: "POST",
        path: "/v1/channels/news",
        headers: { Authorization: "acme bob" },
        body: broadcast
      },
      { path: "/v1/subscriptions", headers: { authorization: "acme bob" } }
    ]
  })
  assert.deepEqual(statusesOf(mixed), [202, 401, 401, 403, 200])
})
