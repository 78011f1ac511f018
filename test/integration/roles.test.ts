// One stage per process: several gateways and workers share the work and see each other's writes.
import { assert, it } from "vitest"
import { call, finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("works as two gateways and two workers, and every write is seen through the other gateway", {
  timeout: 150_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const workers = "projection,fanout,delivery,tally"
  await using one = await startService({ natsUrl: nats.url, roles: "gateway" })
  await using two = await startService({ natsUrl: nats.url, roles: "gateway" })
  await using _first = await startService({ natsUrl: nats.url, roles: workers })
  await using _second = await startService({ natsUrl: nats.url, roles: workers })
  const gateways = [one.url, two.url]
  const agents = Array.from({ length: 120 }, () => push.subscribe())
  await join(
    gateways,
    "news",
    agents.map(({ subscription }) => subscription)
  )

  for (let i = 0; i < 50; i++) {
    const [here, there] = i % 2 === 0 ? [one.url, two.url] : [two.url, one.url]
    const channel = `round${i}`
    assert.equal(
      (await call(here, "PUT", `/channels/${channel}/registration`, "walker")).status,
      202
    )
    const seen = await call(there, "GET", `/channels/${channel}`, "walker")
    assert.equal(seen.status, 200)
    assert.equal(seen.body.data.registrations, 1)
    assert.equal(
      (await call(there, "DELETE", `/channels/${channel}/registration`, "walker")).status,
      202
    )
    const left = await call(here, "GET", `/channels/${channel}`, "walker")
    assert.equal(left.body.data.registrations, 0)
  }

  const counts = await finished(two.url, "news", await publish(one.url, "news", { n: 1 }))
  assert.deepInclude(counts, { accepted: 120, delivered: 120 })
  assert.isTrue(agents.every(({ received }) => received.length === 1))
})
