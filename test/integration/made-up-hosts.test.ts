// What hosts that somebody made up cost genuine push services, through the running service. On
// loopback each port is a host of its own, and nobody listens on those below 1,300.
import { assert, it } from "vitest"
import { pushesOf } from "../support/audit.ts"
import { finished, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const madeUpHosts = 1_200
const firstPort = 81

it("1,200 made-up hosts cost a genuine push service neither its token nor its pause", {
  timeout: 240_000
}, async () => {
  await using nats = await startNats()
  await using service = await startService({
    natsUrl: nats.url,
    env: { BELLCAST_RETRY_BASE_MILLIS: "60000" }
  })
  await using genuine = await startPushService()
  await using throttling = await startPushService()
  const genuineOnes = [genuine.subscribe()]
  const script = ["201", "429 retry-after 600"]
  const throttled = Array.from({ length: 6 }, () => throttling.subscribe({ script }))
  const forged = Array.from({ length: madeUpHosts }, (_, i) => ({
    ...genuine.subscribe().subscription,
    endpoint: `http://127.0.0.1:${firstPort + i}/push`
  }))
  await fillChannels(nats.url, [
    { name: "genuine", subscriptions: genuineOnes.map((each) => each.subscription) },
    { name: "throttling", subscriptions: throttled.map((each) => each.subscription) },
    { name: "forged", subscriptions: forged }
  ])
  const publishTo = (channel: string) => publish(service.url, channel, { n: 1 }, { ttl: "3600" })
  const attempted = async (broadcast: string, pushes: number) =>
    until(
      () => pushesOf(nats.url, broadcast),
      (list) => list.length === pushes && list.every((each) => each.reason !== undefined)
    )

  await finished(service.url, "genuine", await publishTo("genuine"))
  await finished(service.url, "throttling", await publishTo("throttling"))
  await attempted(await publishTo("throttling"), 6)
  assert.equal(throttling.requests, 12)

  const failed = await attempted(await publishTo("forged"), madeUpHosts)
  assert.isAbove(failed.filter((each) => each.reason === "connection-refused").length, 1_100)

  await finished(service.url, "genuine", await publishTo("genuine"))
  const [before, after] = genuineOnes[0]!.received
  assert.equal(after!.headers.authorization, before!.headers.authorization)

  const deferred = await attempted(await publishTo("throttling"), 6)
  for (const { reason } of deferred) assert.equal(reason, "push-service-throttled")
  assert.equal(throttling.requests, 12)
})
