// The API for internal services on NATS: a plain client of core NATS sends requests, and gets what
// a client of HTTP gets.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect, headers, type NatsConnection } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, it } from "vitest"
import { basic, call, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { type Service, startService } from "../support/service.ts"
import { idOf } from "../support/users.ts"

let nats: TestNats
let push: Awaited<ReturnType<typeof startPushService>>
let service: Service
let nc: NatsConnection

const env = {
  BELLCAST_AUTH_POLICIES: "basicauth",
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "news=nats:billing",
  BELLCAST_USER_WRITE_PRINCIPALS: "nats:billing nats:orders"
}

beforeAll(async () => {
  nats = await startNats()
  push = await startPushService()
  service = await startService({ natsUrl: nats.url, env })
  nc = await connect({ servers: nats.url })
})
afterAll(async () => {
  await nc?.close()
  for (const each of [service, push, nats]) await each?.[Symbol.asyncDispose]()
})

const request = async (
  operation: string,
  body: unknown,
  source = "billing",
  given: Readonly<Record<string, string>> = {}
) => {
  const head = headers()
  for (const [name, value] of Object.entries(given)) head.set(name, value)
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const options = { timeout: 15_000, headers: head }
  const msg = await nc.request(`bellcast.api.${source}.${operation}`, text, options)
  const header = (name: string) => msg.headers?.get(name) || undefined
  const answer = msg.string()
  return {
    code: Number(header("Nats-Service-Error-Code") ?? 0),
    header,
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
    body: (answer === "" ? undefined : JSON.parse(answer)) as any
  }
}

const bucketState = async () => (await jetstreamManager(nc)).streams.info("KV_bellcast_permissions")

/** The id of a user, who has one browser. */
const subscribed = async (name: string, script = ["201"]) => {
  const agent = push.subscribe({ script })
  const data = agent.subscription
  assert.equal((await call(service.url, "POST", "/subscriptions", name, { data })).status, 201)
  const { id } = (await call(service.url, "GET", "/", name)).body.user as { id: string }
  return { id, agent }
}

it("lets a source write drafts, and publish each as it was reviewed, once", async () => {
  const data = { data: { n: 1 }, to: { channels: ["news"] } }
  const stored = await request("draft-put", { draft: "a", data })
  assert.deepInclude(stored.body.data, { id: "a", author: "nats:billing", ...data })
  const stale = await request("draft-put", { draft: "a", data }, "billing", { "If-Match": '"1"' })
  assert.deepInclude(stale.body, { error_code: "modified-meanwhile" })
  assert.equal((await request("draft", { draft: "a" }, "orders")).body.error_code, "unknown-object")
  assert.deepEqual((await request("drafts", {})).body.data, [stored.body.data])
  assert.equal(
    (await request("draft-publish", { draft: "a" })).body.error_code,
    "precondition-required"
  )
  const reviewed = { "If-Match": stored.header("ETag")! }
  const counted = await request("draft-publish", { draft: "a", dry_run: true }, "billing", reviewed)
  assert.property(counted.body.data, "people")
  const sent = await request("draft-publish", { draft: "a" }, "billing", reviewed)
  assert.equal(sent.body.code, 202, JSON.stringify(sent.body))
  const again = await request("draft-publish", { draft: "a" }, "billing", reviewed)
  assert.equal(again.body.id, sent.body.id)
  assert.deepEqual((await request("drafts", {})).body.data, [])
  await request("draft-put", { draft: "b", data })
  assert.deepInclude((await request("draft-delete", { draft: "b" })).body.data, { deleted: true })
})

it("lets an operator list, show, publish and delete drafts by the command", async () => {
  const cli = (...args: ReadonlyArray<string>) => runCli(["draft", ...args, "--nats", nats.url])
  assert.equal((await cli("list")).stdout, "no drafts\n")
  const data = { data: { n: 1 }, to: { channels: ["news"] } }
  const { body } = await request("draft-put", { draft: "soon", data })
  await request("draft-put", {
    draft: "late",
    data: { name: "Late\u001b[2J", to: { users: [idOf("ann")] } }
  })
  const list = (await cli("list")).stdout
  assert.match(list, /^DRAFT .*\nlate .* 1 user .*\nsoon .* news .*nats:billing\n$/)
  assert.notInclude(list, "\u001b")
  assert.deepEqual(JSON.parse((await cli("show", "soon", "--json")).stdout), body.data)
  const at = body.data.last_modified
  const changed = `\nlast_modified   ${new Date(at).toISOString()} (--reviewed ${at})\n`
  assert.include((await cli("show", "soon")).stdout, changed)
  const given = ["publish", "soon", "--source", "billing", "--reviewed"]
  const stale = await cli(...given, "1")
  assert.deepEqual([stale.code, stale.stdout], [1, ""])
  assert.match(stale.stderr, /the gateway refused it \(412, modified-meanwhile\)/)
  const sent = await cli(...given, String(body.data.last_modified))
  assert.match(sent.stdout, /^broadcast \d+ is accepted\n$/)
  assert.equal((await cli("delete", "late")).stdout, "draft late is deleted\n")
  const gone = await cli("show", "late")
  assert.deepEqual([gone.code, gone.stderr], [1, "bellcast: there is no draft late\n"])
})

it("lets a source register users, list them, send to them, and log them out", async () => {
  const [ann, bob] = [await subscribed("ann"), await subscribed("bob")]
  for (const user of [ann.id, bob.id])
    assert.deepEqual((await request("member-put", { channel: "news", user })).body, {
      code: 202,
      message: "Accepted"
    })
  assert.equal((await call(service.url, "GET", "/channels/news", "ann")).status, 200)

  const first = await request("members", { channel: "news", _limit: "1" })
  assert.equal(first.header("Total-Records"), "2")
  const _token = first.header("Next-Page")
  const second = await request("members", { channel: "news", _limit: "1", _token })
  assert.isUndefined(second.header("Next-Page"))
  const listed = [...first.body.data, ...second.body.data].map(({ id }) => id)
  assert.sameMembers(listed, [ann.id, bob.id])

  const sent = { data: { invoice: 7 }, to: { users: [ann.id], channels: ["news"] } }
  const key = { "Idempotency-Key": "invoice-7", TTL: "60" }
  const broadcast = (await request("publish", sent, "billing", key)).header("Bellcast-Broadcast")
  const again = await request("publish", sent, "billing", key)
  assert.equal(again.header("Bellcast-Broadcast"), broadcast)
  const { body } = await until(
    () => request("broadcast", { broadcast }),
    (state) => state.body.data.finished === true
  )
  assert.deepInclude(body.data, { id: broadcast, accepted: 2, delivered: 2 })
  assert.lengthOf(ann.agent.received, 1)
  assert.include(service.output(), `"uid":"nats:billing"`)

  await request("member-delete", { channel: "news", user: bob.id })
  assert.equal((await call(service.url, "GET", "/channels/news", "bob")).status, 403)
  const { data } = (await request("logout", { user: ann.id })).body
  assert.deepEqual(
    data.map(({ deleted }: { deleted: boolean }) => deleted),
    [true]
  )
  const list = await call(service.url, "GET", "/subscriptions", "ann")
  assert.deepEqual(list.body.data, [])
})

it("refuses a source what its principal may not do, with the errors of HTTP", async () => {
  const { id: user } = await subscribed("carol")
  const member = { channel: "news", user }
  const forbidden = (await call(service.url, "POST", "/channels/news", "carol", {})).body
  assert.equal(forbidden.code, 403)
  const refused = async (operation: string, body: unknown, source: string, expected: unknown) => {
    const { body: got, code } = await request(operation, body, source)
    assert.deepEqual([got, code], [expected, (expected as { code: number }).code], operation)
  }
  // Orders has the right `users`, and no channel; billing no other channel; shop has nothing.
  await refused("member-put", member, "orders", forbidden)
  await refused("members", { channel: "news" }, "orders", forbidden)
  await refused("member-put", { ...member, channel: "other" }, "billing", forbidden)
  await refused("publish", { to: { channels: ["other"] } }, "billing", forbidden)
  await refused("publish", { to: { users: [user] } }, "shop", forbidden)
  await refused("logout", { user }, "shop", forbidden)
  const grant = ["permissions", "grant", "other", "nats:orders", "--nats", nats.url]
  const { code, stderr } = await runCli(grant)
  assert.deepEqual([code, stderr], [0, ""])
  const granted = { channel: "other", user }
  assert.equal((await request("member-put", granted, "orders")).body.code, 202)

  const { body, header } = await request("publish", { to: { users: [user] } })
  const broadcast = header("Bellcast-Broadcast")!
  // An address of the API is of no use on NATS.
  assert.deepEqual(body, { code: 202, message: "Accepted", id: broadcast, warnings: [] })
  const unseen = await request("broadcast", { broadcast }, "shop")
  assert.deepInclude(unseen.body, { code: 404, errno: 110 })
  // A user of HTTP is no source, even with the name of one.
  const authorization = basic("nats:billing")
  const named = await call(service.url, "GET", `/broadcasts/${broadcast}`, undefined, undefined, {
    authorization
  })
  assert.equal(named.status, 404)
})

it("pauses, resumes and cancels a broadcast for a source that may see it", async () => {
  const { id } = await subscribed("dave", ["503 retry-after 3000"])
  const sent = await request("publish", { to: { users: [id] } })
  const broadcast = sent.header("Bellcast-Broadcast")!
  assert.equal((await request("cancel", { broadcast }, "shop")).code, 404)
  assert.equal((await request("cancel", {})).body.message, "broadcast in body: Required")
  const stale = await request("pause", { broadcast }, "billing", { "If-Match": '"1"' })
  assert.deepInclude(stale.body, { code: 412, error_code: "modified-meanwhile" })
  assert.equal((await request("pause", { broadcast })).body.data.state, "paused")
  assert.equal((await request("resume", { broadcast })).body.data.state, "running")
  const { body, code } = await request("cancel", { broadcast })
  assert.deepEqual([code, body.data.state], [0, "cancelled"])
  const ended = await until(
    () => request("broadcast", { broadcast }),
    (state) => state.body.data.finished === true
  )
  assert.deepInclude(ended.body.data, { state: "cancelled", accepted: 1, cancelled: 1 })
})

it("says what is wrong with a request", async () => {
  const invalid = async (operation: string, body: unknown, expected: object, given = {}) =>
    assert.deepInclude((await request(operation, body, "billing", given)).body, expected)
  const invalidUser = (user: unknown, message: string) =>
    invalid("member-put", { channel: "news", user }, { code: 400, errno: 109, message })
  await invalidUser(undefined, "user in body: Required")
  for (const user of [7, { toString: 1 }, ["\udfff"]])
    await invalidUser(user, "user in body: Must be a string")
  await invalidUser("\ud800", "user in body: Must be well-formed Unicode")
  await invalid("member-put", "not json", { code: 400, errno: 109 })
  await invalid("member-put", { channel: "news", user: "acme:7" }, { code: 400, errno: 107 })
  await invalid("members", { channel: "news", _limit: "few" }, { code: 400, errno: 107 })
  await invalid("publish", { to: {} }, { code: 400, errno: 109 })
  // Of publish-channel a gateway reads the body twice, as a part of it is in the path.
  for (const operation of ["publish", "publish-channel"]) {
    const lossy = '{"channel":"news","data":{"n":738529527931269425}}'
    const { message } = (await request(operation, lossy)).body
    assert.match(message, /738529527931269425 would become 738529527931269400/)
  }
  const data = { web_push: 8030, notification: { title: "x" } }
  await invalid("publish", { data, to: { channels: ["news"] } }, { code: 400, errno: 109 })
  await invalid("publish", { to: { channels: ["news"] } }, { code: 400 }, { TTL: "soon" })
  await invalid("publish", "x".repeat(300_000), { code: 413, error_code: "body-too-large" })
  await invalid("logout", "x".repeat(20_000), { code: 413, error_code: "body-too-large" })
  await invalid(
    "publish",
    "{}",
    { code: 431, error_code: "headers-too-large" },
    { Long: "x".repeat(20_000) }
  )
  const unknown = await request("registrations", {}).catch((error: Error) => error.message)
  assert.match(String(unknown), /no responders/i)
})

it("stores no response as a message, whatever reply subject is asked for", async () => {
  const { state } = await bucketState()
  const reply = "$KV.bellcast_permissions.news.publishers"
  nc.publish("bellcast.api.billing.members", JSON.stringify({ channel: "news" }), { reply })
  nc.publish("$SRV.PING", "", { reply })
  await nc.flush()
  await request("members", { channel: "news" })
  assert.deepEqual((await bucketState()).state, state)
})

it("runs a bounded number of requests of a source at once", async () => {
  const all = await Promise.all(
    Array.from({ length: 200 }, () => request("members", { channel: "news" }))
  )
  const refused = all.filter(({ code }) => code === 429)
  assert.isNotEmpty(refused)
  for (const { body, header } of refused) {
    assert.equal(body.error_code, "too-many-at-once")
    assert.isNotEmpty(header("Retry-After"))
  }
  assert.isAtLeast(all.filter(({ body }) => body.data !== undefined).length, 32)
})

type Stats = Record<string, unknown> & { readonly endpoints: Array<Record<string, unknown>> }

it("describes itself to clients of NATS micro", async () => {
  const ask = async (verb: string, service = "bellcast") =>
    (await nc.request(`$SRV.${verb}.${service}`, "", { timeout: 15_000 })).json<Stats>()
  const { id, metadata, name, type, version } = await ask("PING")
  assert.deepEqual([name, type, metadata], ["bellcast", "io.nats.micro.v1.ping_response", {}])
  assert.match(String(version), /^\d+\.\d+\.\d+$/)
  assert.deepInclude((await ask("INFO")).endpoints as object[], {
    name: "member-put",
    subject: "bellcast.api.*.member-put",
    queue_group: "q"
  })
  const before = await ask("STATS")
  await request("members", {})
  const after = await ask("STATS", `bellcast.${id}`)
  const of = ({ endpoints }: Stats) => endpoints.find(({ name }) => name === "members")!
  assert.equal(Number(of(after)["num_requests"]), Number(of(before)["num_requests"]) + 1)
  assert.equal(of(after)["last_error"], "400:Bad Request")
})

it("loses no request when one of two gateways stops", { timeout: 60_000 }, async () => {
  const second = await startService({ natsUrl: nats.url, env, roles: "gateway" })
  let isAsking = true
  let answered = 0
  const ask = async () => {
    while (isAsking) {
      assert.equal((await request("members", { channel: "news" })).code, 0)
      answered++
    }
  }
  const asking = Promise.all([ask(), ask(), ask(), ask()])
  await until(
    async () => second.output(),
    (output) => output.includes("/channels/news/members")
  )
  await second.stop()
  const before = answered
  await until(
    async () => answered,
    (count) => count > before + 20
  )
  isAsking = false
  await asking
})
