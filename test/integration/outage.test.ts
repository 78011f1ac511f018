// Outages during a broadcast: NATS is killed, or outcomes cannot be stored.
import { assert, it } from "vitest"
import { pushesOf } from "../support/audit.ts"
import { finished, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { settled } from "../support/quiet.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** Settings.unrecordedPushesMax: at most so many pushes are sent twice after a crash. */
const duplicatesMax = 768

it("goes on after nats-server was killed in mid-broadcast: all are reached, at most 768 twice", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService({ decrypt: false })
  await using service = await startService({ natsUrl: nats.url })
  const subscriptions = await push.subscribe(1_100, { script: ["slow 200"] })
  await fillChannels(nats.url, [{ name: "news", subscriptions }])
  const broadcast = await publish(service.url, "news", { n: 1 })
  await push.waitForDistinct(200, 30_000)
  await nats.kill()
  const { distinct } = (await push.report()).counts
  assert.isBelow(distinct, 1_100, "the kill came too late to prove anything")
  await nats.restart()
  assert.deepInclude(await finished(service.url, "news", broadcast, 90_000), {
    accepted: 1_100,
    delivered: 1_100,
    waiting: 0
  })
  const { counts } = await push.report()
  assert.equal(counts.distinct, 1_100)
  assert.isAtMost(counts.duplicates, duplicatesMax)
})

it("waits while outcomes cannot be written, sends nothing twice, and the counts add up later", {
  timeout: 120_000
}, async () => {
  const unrecordedMax = 64
  await using nats = await startNats()
  await using push = await spawnPushService({ decrypt: false })
  await using service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_UNRECORDED_PUSHES_MAX: String(unrecordedMax) }
  })
  // Slow, so that the stream is full long before all are sent.
  const subscriptions = await push.subscribe(500, { script: ["slow 400"] })
  await fillChannels(nats.url, [{ name: "news", subscriptions }])
  await using admin = await connectAdmin(nats.url)
  const { jsm } = admin
  const { config } = await jsm.streams.info("BELLCAST_WORK")
  const broadcast = await publish(service.url, "news", { n: 1 })
  await push.waitForDistinct(100, 30_000)
  const { state } = await jsm.streams.info("BELLCAST_WORK")
  await jsm.streams.update("BELLCAST_WORK", { ...config, max_bytes: state.bytes })
  await until(
    async () => service.output(),
    (log) => log.includes("outcomes cannot be written: pushes wait")
  )
  // Pushes that did not wait would go on until all are sent.
  const requests = await settled(async () => (await push.report()).counts.requests, 1_500)
  const recorded = (await pushesOf(nats.url, broadcast)).length
  assert.isBelow(recorded + unrecordedMax, 500, "the stream filled too late to prove anything")
  assert.isAtMost(requests, recorded + unrecordedMax)
  await jsm.streams.update("BELLCAST_WORK", config)
  assert.deepInclude(await finished(service.url, "news", broadcast, 60_000), {
    accepted: 500,
    delivered: 500,
    waiting: 0
  })
  const { counts } = await push.report()
  assert.deepInclude(counts, { distinct: 500, duplicates: 0 })
})
