// Durable consumers that somebody deletes, pauses, changes or replaces while the service runs: the
// service makes them work again within seconds and says so, and every push is sent once.
import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "vitest"
import { rebuildAt } from "#test/history.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin, type NatsAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const browsers = 60
const consumers = [
  ["BELLCAST_LOG", "planner"],
  ["BELLCAST_WORK", "deliver"],
  ["BELLCAST_WORK", "limited"],
  ["BELLCAST_WORK", "retry"]
] as const
/** A look every 2 or 3 s, and the time to deliver; less than the 15 s of `ack_wait`. */
const withinMillis = 14_000

let nats: Awaited<ReturnType<typeof startNats>>
let push: Awaited<ReturnType<typeof startPushService>>
let admin: NatsAdmin
/** Two processes repair: one with every role, and one that plans and delivers. */
let services: ReadonlyArray<Service> = []
let agents: ReadonlyArray<ReturnType<typeof push.subscribe>>

const [url, output] = [
  () => services[0]!.url,
  () => services.map((service) => service.output()).join("")
]
/** Resolves once a process has logged the words. The line may come later than its effect. */
const logged = (words: RegExp) =>
  until(
    async () => output(),
    (text) => words.test(text)
  )
const isDelivered = { accepted: browsers, delivered: browsers }

/** Sends a broadcast and returns when all of it is delivered. */
const deliveredAfter = async (broadcast: string) =>
  assert.deepInclude(await finished(url(), "news", broadcast, withinMillis), isDelivered)

/** How many pushes each browser got since the last call. */
const receivedOnce = (times: number) => {
  assert.deepEqual(
    agents.map(({ received }) => received.length),
    agents.map(() => times)
  )
  push.reset()
}

describe("durable consumers", { timeout: 60_000 }, () => {
  // A test that failed may have left pushes, and is tried again.
  beforeEach(() => push.reset())

  beforeAll(async () => {
    nats = await startNats({ syncAlways: false })
    push = await startPushService()
    admin = await connectAdmin(nats.url)
    // A broadcast takes a second, so that a fault comes in the middle of it.
    const env = { BELLCAST_PUSHES_UNDER_WAY_MAX: "8", BELLCAST_HTTP2: "false" }
    services = [
      await startService({ natsUrl: nats.url, env }),
      await startService({ natsUrl: nats.url, env, roles: "fanout,delivery" })
    ]
    agents = Array.from({ length: browsers }, () => push.subscribe({ script: ["slow 200"] }))
    await join(
      [url()],
      "news",
      agents.map(({ subscription }) => subscription)
    )
  })
  afterAll(async () => {
    for (const service of services) await service.kill()
    await admin.nc.close()
    await push[Symbol.asyncDispose]()
    await nats[Symbol.asyncDispose]()
  })

  it("that are deleted in mid-broadcast are made again, and nothing is sent twice", async () => {
    const first = await publish(url(), "news", { n: 1 })
    await until(
      async () => agents.filter(({ attempts }) => attempts.length > 0).length,
      (count) => count > 0
    )
    assert.isBelow(agents.filter(({ received }) => received.length > 0).length, browsers)
    for (const [stream, name] of consumers) await admin.jsm.consumers.delete(stream, name)
    const second = await publish(url(), "news", { n: 2 })
    await deliveredAfter(first)
    await deliveredAfter(second)
    receivedOnce(2)
    for (const [, name] of consumers)
      await logged(
        new RegExp(`"level":50,.*"msg":"the consumer ${name} was deleted: it is made again`)
      )
    const metrics = String((await call(url(), "GET", "/__metrics__")).body)
    assert.match(metrics, /^bellcast_consumer_working\{consumer="planner"\} 1$/m)
  })

  it("that are paused are resumed, and what waited is delivered", async () => {
    const end = new Date(Date.now() + 3_600_000)
    for (const [stream, name] of consumers) await admin.jsm.consumers.pause(stream, name, end)
    await deliveredAfter(await publish(url(), "news", { n: 3 }))
    receivedOnce(1)
    for (const name of ["planner", "deliver"])
      await logged(new RegExp(`"the consumer ${name} was paused: it is resumed"`))
    const metrics = String((await call(url(), "GET", "/__metrics__")).body)
    assert.match(
      metrics,
      /^bellcast_consumer_repairs_total\{consumer="planner",repair="resumed"\} [1-9]$/m
    )
  })

  it("that are changed are changed back", async () => {
    const { config } = await admin.jsm.consumers.info("BELLCAST_WORK", "deliver")
    await admin.jsm.consumers.update("BELLCAST_WORK", "deliver", {
      ack_wait: nanos(1_000),
      filter_subjects: ["bellcast.job.nothing"],
      max_batch: 1
    })
    const broadcast = await publish(url(), "news", { n: 4 })
    // A pull with such a filter moves the consumer past what it does not match.
    const pull = { batch: 1, expires: nanos(200) }
    const subject = "$JS.API.CONSUMER.MSG.NEXT.BELLCAST_WORK.deliver"
    admin.nc.publish(subject, JSON.stringify(pull), { reply: "nobody" })
    // Between its end and its return there is none.
    const read = () =>
      admin.jsm.consumers.info("BELLCAST_WORK", "deliver").then(
        (info) => info.config,
        () => undefined
      )
    const same = (await until(read, (now) => now?.ack_wait === config.ack_wait, withinMillis))!
    assert.deepEqual(
      [same.filter_subjects, same.filter_subject, same.max_batch ?? 0],
      [config.filter_subjects, config.filter_subject, 0]
    )
    await deliveredAfter(broadcast)
    receivedOnce(1)
    await logged(/"changed":"filter_subjects,ack_wait,max_batch"/)
  })

  it("that are replaced by one that skips messages are made again behind what was acknowledged", {
    retry: 2
  }, async () => {
    await admin.jsm.consumers.delete("BELLCAST_LOG", "planner")
    const broadcast = await publish(url(), "news", { n: 5 })
    await admin.jsm.consumers.add("BELLCAST_LOG", {
      durable_name: "planner",
      filter_subjects: ["bellcast.cmd.broadcast.>"],
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.New
    })
    await deliveredAfter(broadcast)
    receivedOnce(1)
    await logged(/"the consumer planner was replaced or changed and loses messages/)
    // From the first message that was not acknowledged, not from the beginning of LOG.
    const { config } = await admin.jsm.consumers.info("BELLCAST_LOG", "planner")
    assert.isAbove(config.opt_start_seq ?? 0, browsers)
  })

  it("come back with the bucket of leases, and a lost bucket is never read as empty", async () => {
    await admin.jsm.streams.delete("KV_bellcast_cache")
    const cached = () => call(url(), "GET", "/__heartbeat__")
    await until(cached, ({ status }) => status === 200, withinMillis)
    await logged(/"msg":"the bucket of leases and page tokens was deleted: made again"/)
    for (const bucket of ["subscriptions", "channels"])
      await admin.jsm.streams.delete(`KV_bellcast_${bucket}`)
    const { subscription } = agents[0]!
    assert.equal((await call(url(), "GET", "/subscriptions", "user0")).status, 503)
    for (const user of ["user0", "newcomer"])
      assert.equal(
        (await call(url(), "POST", "/subscriptions", user, { data: subscription })).status,
        503
      )
    const broadcast = await publish(url(), "news", { n: 6 })
    await logged(/"level":50,.*"msg":"a bucket is gone: .* run `bellcast rebuild`/)
    // A planner that took the missing count for 0 would send to nobody.
    await until(
      () => admin.jsm.consumers.info("BELLCAST_LOG", "planner"),
      ({ num_ack_pending }) => num_ack_pending === 1
    )
    await services[0]!.stop()
    await rebuildAt(nats.url)
    services = [await startService({ natsUrl: nats.url }), ...services.slice(1)]
    await finished(url(), "news", broadcast)
    receivedOnce(1)
  })

  it("report a stream that is gone, and do not make it again", async () => {
    await admin.jsm.streams.delete("BELLCAST_WORK")
    const gone = /"level":50,.*"streams":"BELLCAST_WORK".*"msg":"a stream is gone/
    await until(
      async () => services.every((service) => gone.test(service.output())),
      (all) => all
    )
    const { body, status } = await call(url(), "GET", "/__heartbeat__")
    assert.deepEqual([status, body.delivery], [503, false])
    const names = await admin.jsm.streams.names().next()
    assert.notInclude(names, "BELLCAST_WORK")
    const metrics = await until(
      async () => String((await call(url(), "GET", "/__metrics__")).body),
      (text) => /^bellcast_consumer_working\{consumer="deliver"\} 0$/m.test(text)
    )
    assert.match(metrics, /^bellcast_consumer_working\{consumer="planner"\} 1$/m)
    assert.match(metrics, /^bellcast_backlog_known 0$/m)
    assert.notInclude(metrics, "NaN")
  })
})
