// Which messages share an ephemeral key pair, seen by the push services that get them.
import { assert, describe, it } from "vitest"
import { call, finished, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

describe("the browsers of one user", () => {
  it("get messages with a key pair each, at one push service and at two", {
    timeout: 60_000
  }, async () => {
    await using nats = await startNats()
    await using one = await startPushService()
    await using two = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const users = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const user = `user${i}`
        const agents = [one, two, one, two].map((push) => push.subscribe())
        for (const { subscription } of agents)
          await call(service.url, "POST", "/subscriptions", user, { data: subscription })
        await call(service.url, "PUT", "/channels/news/registration", user)
        return agents
      })
    )
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    assert.deepInclude(counts, { accepted: 32, delivered: 32 })
    const senders = users.map((agents) => agents.map(({ received }) => received[0]?.sender))
    for (const [i, each] of senders.entries()) assert.equal(new Set(each).size, 4, `user${i}`)
    // Sharing between users is what keeps encryption cheap.
    assert.isBelow(new Set(senders.flat()).size, 32)
  })
})
