// Broadcasts that start at a time that their publisher gives: once, at that time, and to those who
// are there then.
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { assert, describe, it } from "vitest"
import { call, finishedAt, join, publishAt, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { earlyMillisMax, inMillis } from "../support/times.ts"
import { useService } from "../support/use-service.ts"
import { idOf } from "../support/users.ts"

/** A start is 250 ms late at most, and later on a machine that runs other tests, too. */
const busyMillis = 5_000

const path = (id: string) => `/broadcasts/${id}`

const schedule = (url: string, channel: string, at: string, data: unknown = { n: 1 }) =>
  publishAt(url, `/channels/${channel}`, { data, at })

const get = async (url: string, id: string) =>
  (await call(url, "GET", path(id), "publisher")).body.data

const patch = (url: string, id: string, data: unknown, user = "publisher") =>
  call(url, "PATCH", path(id), user, { data })

/** The changes of a broadcast in LOG, without the part before the dot. */
const changesOf = async (natsUrl: string, id: string): Promise<ReadonlyArray<string>> => {
  await using admin = await connectAdmin(natsUrl)
  const consumer = await jetstream(admin.nc).consumers.get("BELLCAST_LOG", {
    filter_subjects: [`bellcast.evt.state.${id}`]
  })
  const types: Array<string> = []
  for await (const msg of await consumer.fetch({ max_messages: 100, expires: 1_000 }))
    types.push(msg.headers?.get("Bellcast-Type") ?? "")
  return types.map((type) => type.replace(/^broadcast\.|\/1$/g, ""))
}

/** Each case has a channel and users of its own. */
const shared = useService({ env: { BELLCAST_USER_WRITE_PRINCIPALS: idOf("publisher") } })

describe("a broadcast with a start", () => {
  it("waits for it, and lives from then on", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    await join([service.url], "news", [agent.subscription])
    const at = inMillis(4_000)
    const id = await publishAt(service.url, "/channels/news", { data: { n: 1 }, at }, { ttl: "60" })
    const data = await get(service.url, id)
    assert.deepInclude(data, { state: "scheduled", at, accepted: 0, finished: false })
    assert.equal(data.expires_at, Date.parse(at) + 60_000)
    assert.notProperty(data, "started_at")
    const { body } = await call(service.url, "GET", "/broadcasts?state=scheduled", "publisher")
    assert.deepInclude(body.data[0], { id, state: "scheduled", at, expires_at: data.expires_at })
    assert.lengthOf(agent.received, 0)
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { state: "finished", at, accepted: 1, delivered: 1 })
    assert.isAtLeast(done.started_at, Date.parse(at) - earlyMillisMax)
    assert.isAtMost(done.started_at, Date.parse(at) + busyMillis)
    assert.equal(done.accepted_at, data.accepted_at)
    assert.equal(done.expires_at, done.started_at + 60_000)
    assert.isAtLeast(agent.received[0]!.at, Date.parse(at) - earlyMillisMax)
    assert.deepEqual(await changesOf(nats.url, id), ["scheduled", "started"])
    const idsSince = async (millis: number) => {
      const since = new Date(millis).toISOString()
      const list = await call(service.url, "GET", `/broadcasts?since=${since}`, "publisher")
      return list.body.data.map((each: { readonly id: string }) => each.id)
    }
    assert.deepEqual(await idsSince(done.started_at), [id])
    assert.deepEqual(await idsSince(done.started_at + 1), [])
  })

  it("goes to whoever is there at the start, and not to whoever left before", async () => {
    const { service } = shared
    await using push = await startPushService()
    const [leaver, joiner, named, late] = Array.from({ length: 4 }, () => push.subscribe())
    const one = (agent: typeof leaver, name: string) =>
      join([service.url], "leaving", [agent!.subscription], 1, name)
    await one(leaver, "leaver")
    const at = inMillis(3_600_000)
    const users = [idOf("named0"), idOf("late0")]
    const to = { channels: ["leaving"], users }
    const toAll = await publishAt(service.url, "/broadcasts", { data: { n: 1 }, at, to })
    const toOne = await schedule(service.url, "leaving", at, { n: 2 })
    await call(service.url, "DELETE", "/channels/leaving/registration", "leaver0")
    await one(joiner, "joiner")
    await call(service.url, "POST", "/subscriptions", "named0", { data: named!.subscription })
    for (const id of [toOne, toAll]) {
      assert.equal((await patch(service.url, id, { at: inMillis(0) })).status, 200)
      await finishedAt(service.url, path(id))
    }
    await one(late, "late")
    await call(service.url, "PUT", "/channels/leaving/registration", "leaver0")
    assert.deepInclude(await get(service.url, toAll), { accepted: 2, without_subscription: 1 })
    assert.deepInclude(await get(service.url, toOne), { accepted: 1, delivered: 1 })
    const got = [leaver, joiner, named, late].map((agent) =>
      agent!.received.map(({ text }) => JSON.parse(text).n).sort()
    )
    assert.deepEqual(got, [[], [1, 2], [1], []])
  })

  it("is one of a NATS client, too, whose bad start is a rejection", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    await join([service.url], "billing", [agent.subscription], 1, "billing")
    await using admin = await connectAdmin(nats.url)
    const js = jetstream(admin.nc)
    const publish = async (start: string, body = "{}", name = "Bellcast-Start-At") => {
      const headers = (await import("@nats-io/transport-node")).headers()
      headers.set(name, start)
      const subject = "bellcast.cmd.broadcast.billing.billing"
      return String((await js.publish(subject, body, { headers })).seq)
    }
    const rejected = [
      await publish("tomorrow"),
      await publish("2026-02-30T10:00:00Z"),
      await publish(inMillis(31 * 24 * 3_600_000)),
      await publish(inMillis(-3_700_000)),
      await publish(inMillis(60_000), `{"at":"${inMillis(60_000)}"}`),
      await publish("0", "{}", "Bellcast-Delay-Seconds"),
      await publish("10", '{"delay_seconds":10}', "Bellcast-Delay-Seconds")
    ]
    for (const id of rejected) {
      const { body } = await until(
        () => call(service.url, "GET", path(id), "publisher"),
        ({ body }) => body.data?.rejected !== undefined
      )
      assert.equal(body.data.state, "rejected")
    }
    assert.lengthOf(agent.received, 0)
    const past = await publish(inMillis(-60_000))
    assert.notProperty(await finishedAt(service.url, path(past)), "at")
    const id = await publish(inMillis(1_500))
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { publisher: "nats:billing", accepted: 1, delivered: 1 })
    assert.isNumber(done.started_at)
    const delayed = await publish("1", "{}", "Bellcast-Delay-Seconds")
    const after = await finishedAt(service.url, path(delayed))
    assert.equal(after.at, new Date(after.accepted_at + 1_000).toISOString())
    assert.isAtLeast(after.started_at, after.accepted_at + 1_000 - earlyMillisMax)
    assert.isAtMost(after.started_at, after.accepted_at + 1_000 + busyMillis)
  })

  it("says what it was changed to, at its new time", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    await join([service.url], "changed", [agent.subscription], 1, "changed")
    const key = { "idempotency-key": "one" }
    const body = { data: { n: 1 }, data_by_locale: { de: { n: 3 } }, at: inMillis(60_000) }
    const id = await publishAt(service.url, "/channels/changed", body, key)
    const { at } = body
    assert.deepInclude(await patch(service.url, id, { data: { n: 2 } }), { status: 200 })
    assert.deepInclude(await get(service.url, id), { state: "scheduled", at })
    const sooner = inMillis(1_000)
    const moved = await patch(service.url, id, { at: sooner })
    assert.deepInclude(moved.body.data, { at: sooner })
    // The first body counts for the key, not the present one.
    assert.equal(await publishAt(service.url, "/channels/changed", body, key), id)
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { at: sooner, accepted: 1, delivered: 1 })
    assert.isAtMost(done.started_at, Date.parse(sooner) + busyMillis)
    assert.deepEqual(
      agent.received.map(({ text }) => JSON.parse(text)),
      [{ n: 2 }]
    )
    const late = await patch(service.url, id, { at: inMillis(1_000) })
    assert.deepEqual([late.status, late.body.details], [409, { state: "finished" }])
    const changes = await changesOf(nats.url, id)
    assert.deepEqual(changes, ["scheduled", "changed", "changed", "started"])
  })

  it("keeps its start and its end over pauses", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const roles = "gateway,projection,fanout,tally"
    await using service = await startService({ natsUrl: nats.url, roles })
    const agent = push.subscribe()
    await join([service.url], "news", [agent.subscription])
    const id = await publishAt(
      service.url,
      "/channels/news",
      { at: inMillis(1_000), data: { n: 1 } },
      { ttl: "3000" }
    )
    const { body } = await until(
      () => patch(service.url, id, { state: "paused" }),
      ({ status }) => status === 200
    )
    const { at, expires_at, started_at } = body.data
    assert.equal(expires_at, started_at + 3_000_000)
    assert.equal((await patch(service.url, id, { state: "running" })).status, 200)
    assert.equal((await patch(service.url, id, { state: "paused" })).status, 200)
    assert.equal((await patch(service.url, id, { state: "running" })).status, 200)
    await using _worker = await startService({ natsUrl: nats.url, roles: "delivery" })
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { at, started_at, expires_at, accepted: 1, delivered: 1 })
    const changes = ["scheduled", "started", "paused", "resumed", "paused", "resumed"]
    assert.deepEqual(await changesOf(nats.url, id), changes)
  })

  it("ends with counts of 0 when it is cancelled before", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    await join([service.url], "ended", [agent.subscription], 1, "ended")
    // The start of a command takes seconds where the machine is busy.
    const at = Date.now() + 8_000
    const later = new Date(at + 500).toISOString()
    const id = await schedule(service.url, "ended", new Date(at).toISOString())
    const { code } = await runCli(["broadcast", "cancel", id, "--nats", nats.url])
    assert.equal(code, 0)
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { state: "cancelled", accepted: 0, cancelled: 0 })
    const other = await finishedAt(service.url, path(await schedule(service.url, "ended", later)))
    assert.deepInclude(other, { delivered: 1 })
    assert.lengthOf(agent.received, 1)
    assert.notProperty(await get(service.url, id), "started_at")
    assert.deepEqual(await changesOf(nats.url, id), ["scheduled", "cancelled"])
  })

  it("ends with counts of 0 where the planner hears of it before its process", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    await using admin = await connectAdmin(nats.url)
    const { consumers } = await jetstreamManager(admin.nc)
    await join([service.url], "early", [push.subscribe().subscription], 1, "early")
    const id = await schedule(service.url, "early", inMillis(30_000))
    const isOfStates = (filter: string | undefined) => filter?.startsWith("bellcast.evt.state.")
    for await (const { config, name } of consumers.list("BELLCAST_LOG"))
      if (config.durable_name === undefined && config.filter_subjects?.every(isOfStates))
        await consumers.pause("BELLCAST_LOG", name, new Date(Date.now() + 5_000))
    await patch(service.url, id, { state: "cancelled" })
    const done = await finishedAt(service.url, path(id))
    assert.deepInclude(done, { state: "cancelled", accepted: 0, cancelled: 0 })
  })
})
