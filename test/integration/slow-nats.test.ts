// A NATS that takes long for each write: others keep its disk busy.
import { assert, it } from "vitest"
import { finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("goes on where NATS takes 900 ms for each response", { timeout: 120_000 }, async () => {
  await using nats = await startNats()
  await using proxy = await startNatsProxy(nats.url)
  await using push = await startPushService()
  await using service = await startService({ natsUrl: proxy.url })
  await join([service.url], "news", [push.subscribe().subscription])
  proxy.delay(900)
  const broadcast = await publish(service.url, "news", { n: 1 })
  const done = await finished(service.url, "news", broadcast, 90_000)
  assert.deepInclude(done, { accepted: 1, delivered: 1 })
})
