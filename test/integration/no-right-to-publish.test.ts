// Nothing that users without the right send makes a broadcast appear in LOG, or changes anything of
// another user, and each entry of a batch acts as the user of its own Authorization.
import { Agent } from "node:http"
import fc from "fast-check"
import { afterAll, assert, beforeAll, it } from "vitest"
import { basic, call } from "../support/client.ts"
import { type Acme, startAcme } from "../support/identity/acme.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import {
  behindProxy,
  channels,
  proxySecret,
  rights,
  siteSecret,
  stories,
  strangersOf,
  sweep,
  tokenOf,
  usersRight,
  victim
} from "../support/no-right.ts"
import { broadcast, tell } from "../support/no-right-send.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { createToken } from "../support/run-cli.ts"

let acme: Acme
let push: PushService
let admin: NatsAdmin
let signed = ""
let signedPublisher = ""

beforeAll(async () => {
  push = await startPushService()
  acme = await startAcme({
    BELLCAST_AUTH_POLICIES: "acme=./acme.mjs signed token proxy basicauth",
    BELLCAST_AUTH_SIGNED_SECRETS: siteSecret,
    BELLCAST_AUTH_SIGNED_AUDIENCE: "bellcast",
    BELLCAST_AUTH_PROXY_SECRET: proxySecret,
    BELLCAST_AUTH_PROXY_GROUPS_HEADER: "X-Forwarded-Groups",
    BELLCAST_TRUSTED_PROXIES: "127.0.0.1",
    BELLCAST_CHANNEL_WRITE_PRINCIPALS: rights,
    BELLCAST_USER_WRITE_PRINCIPALS: usersRight,
    // With a lower limit the requests of strangers would end there, and not at their rights.
    BELLCAST_AUTH_FAILURES_PER_ADDRESS_PER_MINUTE_MAX: "0"
  })
  admin = await connectAdmin(acme.nats.url)
  signed = `Bearer ${await tokenOf({ sub: "ann" })}`
  signedPublisher = `Bearer ${await tokenOf({})}`
})
afterAll(async () => {
  for (const each of [admin, acme, push]) await each?.[Symbol.asyncDispose]()
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
  call(acme.service.url, method, path, undefined, body, {
    ...headers,
    ...(authorization === undefined ? {} : { authorization })
  })

/** What the user has whom the requests name. */
const victimHas = async () => {
  const { body, headers } = await send("GET", "/subscriptions", "acme victim")
  const registrations = (await send("GET", "/registrations", "acme victim")).body.data
  return [headers.get("etag"), body.data.length, registrations]
}

/** Stores a browser of the victim, and does to them what only the right `users` allows. */
const nameVictim = async () => {
  const data = push.subscribe().subscription
  assert.equal((await send("POST", "/subscriptions", "acme victim", { data })).status, 201)
  const path = (channel: string) => `/channels/${channel}/members/${encodeURIComponent(victim)}`
  for (const channel of ["news", "other", "elsewhere"])
    assert.equal((await send("PUT", path(channel), signedPublisher)).status, 202)
  assert.equal((await send("DELETE", path("elsewhere"), signedPublisher)).status, 202)
  const to = { users: [victim] }
  const sent = await send("POST", "/broadcasts", signedPublisher, { ...broadcast, to })
  assert.equal(sent.status, 202)
}

it("lets nobody without the right put a broadcast into LOG", { timeout: 120_000 }, async () => {
  const { token } = await createToken(acme.nats.url, "server", "--channel", "elsewhere")
  // Users with the right can, on the channels that are theirs: else nothing below could fail.
  const allowed: ReadonlyArray<[string, string | undefined, Record<string, string>?]> = [
    ["news", signedPublisher, { "idempotency-key": "of the publisher" }],
    ["news-eu", "acme editor"],
    ["elsewhere", "acme scribe"],
    ["other", "acme ann|editors"],
    ["elsewhere", `Bearer ${token}`],
    ["other", undefined, behindProxy("publisher")],
    ["other", undefined, behindProxy("ann", "editors")]
  ]
  for (const [channel, authorization, headers] of allowed) {
    const { status } = await send("POST", `/channels/${channel}`, authorization, broadcast, headers)
    assert.equal(status, 202, `${channel} ${authorization}`)
  }
  assert.equal((await send("POST", "/channels/other", "acme editor", broadcast)).status, 403)
  await nameVictim()
  const before = await broadcasts()
  assert.equal(before, allowed.length + 1)
  const had = await victimHas()
  const strangers = await strangersOf(token)
  for (const channel of channels)
    for (const authorization of strangers) {
      const { status } = await send("POST", `/channels/${channel}`, authorization, broadcast)
      assert.include([401, 403], status, `${channel} ${authorization}`)
    }
  const agent = new Agent({ keepAlive: true })
  const seen = new Set<number>()
  const almost = sweep([undefined, "acme scribe", `Bearer ${token}`, signed])
  const nested = almost.map((story) => ({ ...story, form: "nested" as const }))
  const fronted = sweep([undefined], behindProxy("ann", "readers"))
  for (const story of [...almost, ...nested, ...fronted])
    await tell(acme.service.port, agent, story)
  assert.equal(await broadcasts(), before)
  assert.deepEqual(await victimHas(), had)
  await fc.assert(
    fc.asyncProperty(stories(strangers), async (story) => {
      for (const status of await tell(acme.service.port, agent, story)) seen.add(status)
      assert.equal(await broadcasts(), before)
      assert.deepEqual(await victimHas(), had)
    }),
    { numRuns: Number(process.env["NO_RIGHT_RUNS"] ?? 40) }
  )
  agent.destroy()
  // The requests reach every step of the pipeline.
  assert.includeMembers([...seen], [200, 202, 307, 400, 401, 403, 404, 405])
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
