// SIGTERM: the service completes its pushes and exits with code 0.
import { assert, it } from "vitest"
import { finished, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

it("finishes what is in hand on SIGTERM, exits 0, and sends nothing twice", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  const subscriptions = await push.subscribe(1_000)
  const first = await startService({ natsUrl: nats.url })
  await fillChannels(nats.url, [{ name: "news", subscriptions }])
  const broadcast = await publish(first.url, "news", { n: 1 })
  await push.waitForDistinct(100, 30_000)
  assert.equal(await first.stop(), 0, first.output())
  assert.isBelow(
    (await push.report()).counts.distinct,
    1_000,
    "the signal came too late to prove anything"
  )
  await using second = await startService({ natsUrl: nats.url })
  assert.deepInclude(await finished(second.url, "news", broadcast, 90_000), {
    accepted: 1_000,
    delivered: 1_000
  })
  const { counts } = await push.report()
  assert.deepInclude(counts, { distinct: 1_000, duplicates: 0 })
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
