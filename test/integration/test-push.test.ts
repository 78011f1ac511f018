// A test of a subscription: one push to one browser, and what the push service said to it.
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { call, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { tokenOf } from "../support/users.ts"

const suspend = (natsUrl: string, user: string, id: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    const subject = subjects.subscription(tokenOf(user))
    const generation = (yield* log.last("log", subject))!.seq
    const by = { broadcast: 1, cause: "endpoint-not-allowed", worker: "w", at: Date.now() } as const
    const body = { id, generation, ...by }
    yield* log.append("log", { subject, type: "subscription.suspended/1", body })
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)

describe("a test of a subscription", { timeout: 90_000 }, () => {
  it("sends one push to that browser alone, and says what became of it", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const { url } = service
    const scripts = [["201"], ["410"], ["503 retry-after 30"], ["400"], ["hang"]]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const ids: Array<string> = []
    for (const { subscription: data } of agents)
      ids.push((await call(url, "POST", "/subscriptions", "anna", { data })).body.data.id)
    const other = push.subscribe()
    const berts = await call(url, "POST", "/subscriptions", "bert", { data: other.subscription })
    const test = (id: string, user = "anna", body?: unknown) =>
      call(url, "POST", `/subscriptions/${id}/test`, user, body)

    const bytes = async () => {
      const nc = await connect({ servers: nats.url })
      const { state } = await (await jetstreamManager(nc)).streams.info("BELLCAST_LOG")
      await nc.close()
      return state.bytes
    }
    const before = await bytes()
    const first = await test(ids[0]!, "anna", { data: { hello: 1 } })
    assert.deepEqual(
      [first.status, first.body],
      [200, { data: { fate: "delivered", status: 201, reason: "accepted" } }]
    )
    assert.deepEqual(
      agents.map(({ attempts }) => attempts.length),
      [1, 0, 0, 0, 0]
    )
    assert.equal(agents[0]!.received[0]!.text, '{"hello":1}')
    const own = new URL(first.headers.get("location")!).pathname.replace("/v1", "")
    const state = await until(
      () => call(url, "GET", own, "anna"),
      ({ body }) => body.data?.finished === true
    )
    assert.deepInclude(state.body.data, { accepted: 1, delivered: 1 })
    assert.equal((await call(url, "GET", own, "bert")).status, 404)
    assert.isBelow((await bytes()) - before, 2_000)

    const saidOf = async (i: number) => (await test(ids[i]!)).body.data
    assert.deepEqual(await saidOf(1), { fate: "gone", status: 410, reason: "gone" })
    assert.deepInclude(await saidOf(2), { fate: "retrying", status: 503 })
    assert.deepInclude(await saidOf(3), { fate: "dead", status: 400 })
    assert.equal((await test(ids[1]!)).status, 404)
    assert.equal((await test(ids[0]!, "bert")).status, 404)
    const { id } = berts.body.data
    assert.lengthOf(other.attempts, 0)
    await suspend(nats.url, "bert", id)
    const suspended = { fate: "dead", reason: "suspended" }
    await until(
      () => test(id, "bert"),
      ({ body }) => JSON.stringify(body.data) === JSON.stringify(suspended)
    )
    const began = performance.now()
    const late = await test(ids[4]!)
    assert.equal(late.status, 202)
    assert.isAbove(performance.now() - began, 9_500)
  })

  it("counts as a change of its user", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "3" }
    })
    const data = push.subscribe().subscription
    const stored = await call(service.url, "POST", "/subscriptions", "anna", { data })
    const path = `/subscriptions/${stored.body.data.id}/test`
    const statuses: Array<number> = []
    for (let i = 0; i < 3; i++)
      statuses.push((await call(service.url, "POST", path, "anna")).status)
    assert.deepEqual(statuses, [200, 200, 429])
  })
})
