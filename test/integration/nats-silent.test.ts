// A NATS that falls silent without closing connections: its host lost power, or a firewall dropped
// their state.
import { assert, it } from "vitest"
import { finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startNatsProxy } from "../support/nats-proxy.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("is left for another connection within half a minute, and what was accepted is delivered", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using proxy = await startNatsProxy(nats.url)
  await using push = await startPushService()
  await using service = await startService({ natsUrl: proxy.url })
  const agent = push.subscribe()
  await join([service.url], "news", [agent.subscription])
  proxy.silence()
  await until(
    async () => service.output(),
    (output) => output.includes("the connection to NATS is back"),
    30_000
  )
  const broadcast = await publish(service.url, "news", { n: 1 })
  assert.deepInclude(await finished(service.url, "news", broadcast), { accepted: 1, delivered: 1 })
})
