// Outages in mid-broadcast: NATS killed, the stream of outcomes full, no projector. Whatever happens, everybody is reached and the counts add up.
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** Settings.unrecordedPushesMax */
const duplicatesMax = 768

it("goes on after nats-server was killed in mid-broadcast: all are reached, at most 768 twice", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  await using service = await startService({ natsUrl: nats.url })
  const subscriptions = await push.subscribe(1_500)
  await join([service.url], "news", subscriptions as never)
  const broadcast = await publish(service.url, "news", { n: 1 })
  await push.waitForDistinct(300, 30_000)
  await nats.kill()
  await nats.restart()
  assert.deepInclude(await finished(service.url, "news", broadcast, 90_000), {
    accepted: 1_500,
    delivered: 1_500,
    waiting: 0
  })
  const { counts } = await push.report()
  assert.equal(counts.distinct, 1_500)
  assert.isAtMost(counts.duplicates, duplicatesMax)
})

it("waits while outcomes cannot be written, sends nothing twice, and the counts add up afterwards", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  await using service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_UNRECORDED_PUSHES_MAX: "64" }
  })
  const subscriptions = await push.subscribe(1_000)
  await join([service.url], "news", subscriptions as never)
  await using admin = await connectAdmin(nats.url)
  const { jsm } = admin
  const { config } = await jsm.streams.info("BELLCAST_WORK")
  const broadcast = await publish(service.url, "news", { n: 1 })
  await push.waitForDistinct(100, 30_000)
  const { state } = await jsm.streams.info("BELLCAST_WORK")
  await jsm.streams.update("BELLCAST_WORK", { ...config, max_bytes: state.bytes })
  // Full: what is in flight comes to an end, and nothing more is sent.
  const stuck = await until(
    async () => [
      (await push.report()).counts.requests,
      await new Promise((resolve) => setTimeout(resolve, 1_500))
        .then(() => push.report())
        .then((r) => r.counts.requests)
    ],
    ([before, after]) => before === after,
    30_000
  )
  assert.isBelow(stuck[0]!, 1_000, "the stream filled too late to prove anything")
  await jsm.streams.update("BELLCAST_WORK", config)
  assert.deepInclude(await finished(service.url, "news", broadcast, 60_000), {
    accepted: 1_000,
    delivered: 1_000,
    waiting: 0
  })
  const { counts } = await push.report()
  assert.deepInclude(counts, { distinct: 1_000, duplicates: 0 })
})

it("keeps an accepted broadcast while there is no projector, and sends it when there is one", {
  timeout: 90_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const agent = push.subscribe()
  await using gateway = await startService({ natsUrl: nats.url, roles: "gateway" })
  const projection = await startService({ natsUrl: nats.url, roles: "projection" })
  await join([gateway.url], "news", [agent.subscription])
  await projection.kill()
  await using _workers = await startService({
    natsUrl: nats.url,
    roles: "fanout,delivery,tally",
    env: { BELLCAST_APPLIED_TIMEOUT_MILLIS: "500" }
  })
  const broadcast = await publish(gateway.url, "news", { n: 1 })
  await using admin = await connectAdmin(nats.url)
  const { jsm } = admin
  await until(
    () => jsm.consumers.info("BELLCAST_LOG", "planner"),
    ({ num_redelivered }) => num_redelivered > 0
  )
  for (const [stream, name] of [
    ["BELLCAST_LOG", "planner"],
    ["BELLCAST_WORK", "deliver"],
    ["BELLCAST_WORK", "retry"]
  ] as const) {
    assert.equal(
      (await jsm.consumers.info(stream, name)).config.max_deliver,
      -1,
      `${name} forgets messages`
    )
  }
  assert.lengthOf(agent.received, 0)
  await using _projection = await startService({ natsUrl: nats.url, roles: "projection" })
  assert.deepInclude(await finished(gateway.url, "news", broadcast, 30_000), {
    accepted: 1,
    delivered: 1
  })
  assert.deepEqual(
    agent.received.map(({ text }) => text),
    ['{"n":1}']
  )
})

it("does not send what has expired meanwhile", { timeout: 90_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const agent = push.subscribe()
  await using gateway = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  await join([gateway.url], "news", [agent.subscription])
  const broadcast = await publish(gateway.url, "news", { n: 1 }, { ttl: "1" })
  const progress = () =>
    call(gateway.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")
  // Ten seconds is the least a push is given, see the planner.
  await until(
    progress,
    ({ body }) => body.data.shards === 1 && body.data.expires_at <= Date.now(),
    30_000
  )
  await using _delivery = await startService({ natsUrl: nats.url, roles: "delivery" })
  assert.deepInclude(await finished(gateway.url, "news", broadcast, 30_000), {
    accepted: 1,
    delivered: 0,
    expired: 1
  })
  assert.lengthOf(agent.attempts, 0)
})

it("told to stop while NATS is away and nothing is in hand, ends soon and in order", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using service = await startService({ natsUrl: nats.url })
  await nats.kill()
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is lost")
  )
  assert.equal(await service.stop(), 0)
})
