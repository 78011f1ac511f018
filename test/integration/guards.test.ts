// What keeps a push service in trouble from costing subscribers or flooding it, through the running service.
import { assert, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const progress = async (base: string, broadcast: string) =>
  (await call(base, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")).body.data

const lines = (output: string, words: RegExp) => output.split("\n").filter((line) => words.test(line))

/** How many of the users still hold a subscription. */
const subscribed = async (base: string, users: number) => {
  const lists = await Promise.all(Array.from({ length: users }, (_, i) => call(base, "GET", "/subscriptions", `user${i}`)))
  return lists.filter(({ body }) => body.data.length === 1).length
}

describe("a push service that says 410 to everybody", () => {
  it("costs at most 50 of 200 subscriptions; the pushes to the others wait", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const agents = Array.from({ length: 200 }, () => push.subscribe({ script: ["410"] }))
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const broadcast = await publish(service.url, "news", { n: 1 })
    const counts = await until(
      () => progress(service.url, broadcast),
      ({ gone, retrying }) => gone + retrying === 200
    )
    assert.isAtMost(counts.gone, 50)
    assert.deepInclude(counts, { accepted: 200, dead: 0, expired: 0, waiting: 0, finished: false })
    assert.equal(
      await until(
        () => subscribed(service.url, 200),
        (count) => count === 200 - counts.gone
      ),
      200 - counts.gone
    )
    assert.lengthOf(lines(service.output(), /says of most subscriptions that they are gone/), 1)
    assert.equal(push.requests, 200)
  })
})

describe("a push service that says 410 to 5 of 300", () => {
  it("loses those 5 at the first answer", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    const agents = Array.from({ length: 300 }, (_, i) => push.subscribe({ script: [i < 5 ? "410" : "201"] }))
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const counts = await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    assert.deepInclude(counts, { accepted: 300, delivered: 295, gone: 5 })
    assert.equal(push.requests, 300)
    assert.equal(
      await until(
        () => subscribed(service.url, 300),
        (count) => count === 295
      ),
      295
    )
  })
})
