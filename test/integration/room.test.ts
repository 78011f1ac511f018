// What a full stream or bucket stops, and what still works. Each case fills one, and enlarges it
// under the running service.
import { jetstream } from "@nats-io/jetstream"
import { headers as natsHeaders } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { basicIds } from "#identity/policies/basicauth.ts"
import { pseudonyms } from "#identity/pseudonym.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { type Service, secretEnvironment, startService } from "../support/service.ts"

const secret = secretEnvironment.BELLCAST_USERID_HMAC_SECRET

/** Two permits: two pushes that kept theirs would stop all others. */
const env = { BELLCAST_UNRECORDED_PUSHES_MAX: "2" }

let nats: TestNats
let push: PushService
let service: Service
let admin: NatsAdmin

beforeAll(async () => {
  nats = await startNats({ syncAlways: false })
  push = await startPushService()
  service = await startService({ natsUrl: nats.url, env })
  admin = await connectAdmin(nats.url)
  // Nobody gets these; they make the streams so large that a small share of them is some messages.
  const data = "x".repeat(3_900)
  const ballast = () =>
    call(service.url, "POST", "/channels/ballast", "publisher", { data: { data } })
  for (let i = 0; i < 4; i++) await Promise.all(Array.from({ length: 25 }, ballast))
  // What became of them is recorded in LOG, too.
  await until(
    async () =>
      (await admin.jsm.streams.info("BELLCAST_LOG", { subjects_filter: "bellcast.evt.finished.>" }))
        .state,
    ({ subjects = {} }) => Object.keys(subjects).length === 100
  )
})
afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await push[Symbol.asyncDispose]()
  await nats[Symbol.asyncDispose]()
})

/**
 * Fills a stream to a share of its size. Returns a function that restores the size and waits until
 * the service sees it.
 */
const fill = async (stream: string, share = 1) => {
  const { config, state } = await admin.jsm.streams.info(stream)
  await admin.jsm.streams.update(stream, { max_bytes: Math.floor(state.bytes / share) })
  return async () => {
    await admin.jsm.streams.update(stream, { max_bytes: config.max_bytes })
    await becomes(heartbeat, 200)
  }
}
const subscribe = (user: string) =>
  call(service.url, "POST", "/subscriptions", user, { data: push.subscribe().subscription })
const register = (channel: string, user: string) =>
  call(service.url, "PUT", `/channels/${channel}/registration`, user)
const unregister = (channel: string, user: string) =>
  call(service.url, "DELETE", `/channels/${channel}/registration`, user)
const broadcast = (channel: string) =>
  call(service.url, "POST", `/channels/${channel}`, "publisher", { data: { n: 1 } })
const becomes = (ask: () => ReturnType<typeof call>, status: number) =>
  until(ask, (answer) => answer.status === status)
const token = (user: string) =>
  pseudonyms(secret)(`basicauth:${basicIds(secret)(`${user}:secret`)}`)
/** A user with a browser whose push service follows a script, on a channel. */
const joinWith = async (channel: string, user: string, script: ReadonlyArray<string>) => {
  const data = push.subscribe({ script }).subscription
  assert.equal((await call(service.url, "POST", "/subscriptions", user, { data })).status, 201)
  assert.equal((await register(channel, user)).status, 202)
}
/** The type of the last command or fact about a user's subscriptions. */
const lastOf = async (user: string) => {
  const last_by_subj = `bellcast.cmd.subscription.${token(user)}`
  const message = await admin.jsm.streams.getMessage("BELLCAST_LOG", { last_by_subj })
  return message?.header.get("Bellcast-Type")
}
const finishedFacts = async (channel: string) => {
  const filter = { subjects_filter: `bellcast.evt.finished.${channel}.>` }
  const { state } = await admin.jsm.streams.info("BELLCAST_LOG", filter)
  return Object.keys(state.subjects ?? {}).length
}
const entryOf = (broadcast: string) =>
  admin.jsm.streams.getMessage("KV_bellcast_broadcasts", {
    last_by_subj: `$KV.bellcast_broadcasts.${broadcast}`
  })
/** A command sent to NATS directly: a gateway that knows the stream is full would refuse it. */
const command = async (channel: string, user: string, what: "put" | "delete") => {
  const headers = natsHeaders()
  headers.set("Bellcast-Type", `registration.${what}/1`)
  const body = JSON.stringify({ user, at: Date.now() })
  const subject = `bellcast.cmd.registration.${channel}.${token(user)}`
  await jetstream(admin.nc).publish(subject, body, { headers })
}
const countOf = async (channel: string) => {
  const last_by_subj = `$KV.bellcast_channels.${channel}.registrations`
  const message = await admin.jsm.streams.getMessage("KV_bellcast_channels", { last_by_subj })
  return message?.json<{ registrations: number }>().registrations
}
const channelOf = (channel: string, user: string) =>
  call(service.url, "GET", `/channels/${channel}`, user)
const heartbeat = () => call(service.url, "GET", "/__heartbeat__")

describe("a service that has no room", { timeout: 60_000 }, () => {
  it("rejects writes to a full LOG, still deletes, and recovers with more room", async () => {
    const stored = (await subscribe("ann")).body.data
    assert.equal((await register("news", "ann")).status, 202)
    assert.isTrue((await heartbeat()).body.space)
    const grow = await fill("BELLCAST_LOG", 0.96)
    // A small LOG has little left: nothing is written before the gateway knows.
    const health = await becomes(heartbeat, 503)
    assert.deepEqual(health.body, {
      storage: true,
      cache: true,
      permission: true,
      space: false,
      delivery: true
    })
    const refused = await broadcast("news")
    assert.equal(refused.status, 507)
    assert.deepInclude(refused.body, { code: 507, errno: 201, error: "Insufficient Storage" })
    assert.match(refused.headers.get("retry-after")!, /^\d+$/)
    assert.equal((await subscribe("bob")).status, 507)
    assert.equal((await register("news", "bob")).status, 507)
    const metrics = (await call(service.url, "GET", "/__metrics__")).body
    assert.include(metrics, 'bellcast_stream_full{stream="BELLCAST_LOG"} 1')
    assert.include(metrics, 'bellcast_stream_full{stream="KV_bellcast_channels"} 0')
    assert.match(metrics, /^bellcast_stream_bytes\{stream="KV_bellcast_channels"\} [1-9]/mu)
    // What is held already is no growth.
    assert.equal((await register("news", "ann")).status, 202)
    assert.equal((await unregister("news", "ann")).status, 202)
    const removed = await call(service.url, "DELETE", `/subscriptions/${stored.id}`, "ann")
    assert.equal(removed.status, 200)
    const batch = await call(service.url, "POST", "/batch", "ann", {
      defaults: { method: "PUT" },
      requests: [{ path: "/channels/news/registration" }, { method: "GET", path: "/" }]
    })
    assert.deepEqual(
      batch.body.responses.map(({ status }: { status: number }) => status),
      [507, 200]
    )
    await grow()
    await becomes(() => broadcast("news"), 202)
    await becomes(() => subscribe("bob"), 201)
    const lines = await until(
      async () => service.output(),
      (output) => output.includes("a stream has room again")
    )
    assert.include(lines, "a stream is more than 95 % full")
  })

  it("delivers and counts what was accepted while LOG is full, and stores the facts later", async () => {
    await joinWith("gone", "mia", ["slow 1000 410"])
    await joinWith("gone", "ned", ["slow 1000 418"])
    await joinWith("gone", "oda", ["201"])
    const ids = []
    for (let n = 0; n < 3; n++) ids.push(await publish(service.url, "gone", { n }))
    const grow = await fill("BELLCAST_LOG")
    const counts = { accepted: 3, delivered: 1, gone: 1, dead: 1, finished: true }
    for (const id of ids) assert.deepInclude(await finished(service.url, "gone", id), counts)
    assert.equal(await finishedFacts("gone"), 0)
    assert.equal(await lastOf("mia"), "subscription.put/1")
    const metrics = (await call(service.url, "GET", "/__metrics__")).body
    assert.match(metrics, /bellcast_facts_postponed_total\{fact="subscription.gone"\} [1-9]/u)
    assert.match(metrics, /bellcast_facts_postponed_total\{fact="broadcast.finished"\} [1-9]/u)
    assert.include(service.output(), "removals, strikes or retries cannot be stored")
    await grow()
    await until(
      () => lastOf("mia"),
      (type) => type === "subscription.gone/1"
    )
    await until(
      () => lastOf("ned"),
      (type) => type === "subscription.struck/1"
    )
    await until(
      () => finishedFacts("gone"),
      (count) => count === 3
    )
    for (const id of ids) {
      await until(
        () => entryOf(id),
        (entry) => entry === null
      )
      assert.deepInclude(await finished(service.url, "gone", id), counts)
    }
  })

  it("stores the facts that a killed worker left when LOG was full", async () => {
    await joinWith("killed", "pia", ["slow 1000 410"])
    const id = await publish(service.url, "killed", { n: 1 })
    const grow = await fill("BELLCAST_LOG")
    const counts = { accepted: 1, gone: 1, finished: true }
    assert.deepInclude(await finished(service.url, "killed", id), counts)
    await service.kill()
    service = await startService({ natsUrl: nats.url, env })
    await grow()
    await until(
      () => lastOf("pia"),
      (type) => type === "subscription.gone/1"
    )
    await until(
      () => finishedFacts("killed"),
      (count) => count === 1
    )
    await until(
      () => entryOf(id),
      (entry) => entry === null
    )
  })

  it("refuses a broadcast that WORK has no room to deliver, and nothing else", async () => {
    assert.equal((await subscribe("cid")).status, 201)
    const grow = await fill("BELLCAST_WORK", 0.96)
    await becomes(heartbeat, 503)
    assert.equal((await broadcast("news")).status, 507)
    assert.equal((await register("news", "cid")).status, 202)
    await grow()
    await becomes(() => broadcast("news"), 202)
  })

  it("drops no retry that WORK has no room for, and sends nothing twice", async () => {
    const agents = Array.from({ length: 4 }, () =>
      push.subscribe({ script: ["slow 1000 503", "201"] })
    )
    await join(
      [service.url],
      "busy",
      agents.map(({ subscription }) => subscription)
    )
    const before = push.requests
    const id = await publish(service.url, "busy", { n: 1 })
    await push.waitFor(({ requests }) => requests > before)
    // Room for an outcome of one or two results (500 to 800 bytes), and not for a retry job more.
    const { state } = await admin.jsm.streams.info("BELLCAST_WORK")
    const grow = await fill("BELLCAST_WORK", state.bytes / (state.bytes + 1_000))
    await until(
      async () => (await call(service.url, "GET", "/__metrics__")).body,
      (metrics) => /bellcast_facts_postponed_total\{fact="retry"\} [1-9]/u.test(metrics)
    )
    await grow()
    assert.deepInclude(await finished(service.url, "busy", id), { accepted: 4, delivered: 4 })
    for (const { attempts } of agents)
      assert.deepEqual(
        attempts.map(({ status }) => status),
        [503, 201]
      )
  })

  it("counts late what a full `channels` could not store, and delivers meanwhile", async () => {
    const agent = push.subscribe()
    const data = agent.subscription
    assert.equal((await call(service.url, "POST", "/subscriptions", "dan", { data })).status, 201)
    assert.equal((await register("news", "dan")).status, 202)
    const grow = await fill("KV_bellcast_channels")
    // Each has changed more than once, and one of them stays.
    for (const what of ["put", "delete", "put"] as const) await command("late", "dan", what)
    for (const what of ["put", "delete"] as const) await command("late", "eve", what)
    await becomes(() => register("later", "eve"), 507)
    assert.isUndefined(await countOf("late"))
    // Neither other writes nor broadcasts need this bucket.
    assert.equal((await subscribe("fay")).status, 201)
    assert.equal((await unregister("news", "dan")).status, 202)
    const id = await publish(service.url, "late", { to: "dan" })
    assert.deepInclude(await finished(service.url, "late", id), { accepted: 1, delivered: 1 })
    assert.deepEqual(
      agent.received.map(({ text }) => text),
      ['{"to":"dan"}']
    )
    assert.isFalse((await becomes(heartbeat, 503)).body.space)
    await service.kill()
    service = await startService({ natsUrl: nats.url, env })
    assert.equal((await subscribe("gus")).status, 201)
    assert.isUndefined(await countOf("late"))
    await grow()
    await until(
      () => countOf("late"),
      (count) => count === 1
    )
    await becomes(() => register("later", "eve"), 202)
    assert.equal((await channelOf("later", "eve")).body.data.registrations, 1)
  })

  it("rejects only writes to the full one of `subscriptions` and `registrations`", async () => {
    assert.equal((await subscribe("hal")).status, 201)
    const growLists = await fill("KV_bellcast_subscriptions")
    await becomes(() => subscribe("ida"), 507)
    assert.equal((await register("news", "hal")).status, 202)
    await growLists()
    await becomes(() => subscribe("ida"), 201)
    const growPlaces = await fill("KV_bellcast_registrations")
    await command("other", "hal", "put")
    await becomes(() => register("other", "ida"), 507)
    assert.equal((await subscribe("jon")).status, 201)
    const id = await publish(service.url, "news", { n: 2 })
    assert.equal((await finished(service.url, "news", id)).finished, true)
    await growPlaces()
    await becomes(() => register("other", "ida"), 202)
    await becomes(() => channelOf("other", "hal"), 200)
    assert.equal(await countOf("other"), 2)
  })

  it("delivers while `broadcasts` is full, and shows the counts once there is room", async () => {
    const agent = push.subscribe()
    const data = agent.subscription
    assert.equal((await call(service.url, "POST", "/subscriptions", "kim", { data })).status, 201)
    assert.equal((await register("sport", "kim")).status, 202)
    const grow = await fill("KV_bellcast_broadcasts")
    const ids = [
      await publish(service.url, "sport", { n: 1 }),
      await publish(service.url, "sport", { n: 2 })
    ]
    await until(
      async () => agent.received.length,
      (count) => count === 2
    )
    await until(
      () => channelOf("sport", "kim"),
      ({ body }) => body.data?.push === 2
    )
    await grow()
    for (const id of ids)
      assert.deepInclude(await finished(service.url, "sport", id), { delivered: 1 })
  })

  it("keeps its leases, and takes page tokens, while `cache` is full", async () => {
    for (let i = 0; i < 2; i++) assert.equal((await subscribe("lea")).status, 201)
    const grow = await fill("KV_bellcast_cache")
    const lease = async () =>
      (
        await admin.jsm.streams.getMessage("KV_bellcast_cache", {
          last_by_subj: "$KV.bellcast_cache.lease.projector"
        })
      )?.seq ?? 0
    const before = await lease()
    const { headers } = await call(service.url, "GET", "/subscriptions?_limit=1", "lea")
    const next = headers.get("next-page")!.slice(service.url.length)
    assert.equal((await call(service.url, "DELETE", next, "lea")).status, 200)
    assert.equal((await call(service.url, "DELETE", next, "lea")).status, 400)
    await becomes(heartbeat, 200)
    // Longer than a lease lasts that is not renewed.
    await until(lease, (revision) => revision > before + 10)
    assert.equal((await subscribe("lea")).status, 201)
    assert.notInclude(service.output(), "stopped and starts again")
    await grow()
  })
})
