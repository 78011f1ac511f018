// What one delivery worker learns about a push service holds for the others, those included that start later.
import { assert, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { refuse, reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

const progress = async (base: string, broadcast: string) =>
  (await call(base, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")).body.data

const says = (service: Service, words: RegExp) =>
  until(
    () => Promise.resolve(service.output()),
    (output) => words.test(output)
  )

/** Two workers of which either may get the first broadcast, and the rest of the service. */
const startWorkers = async (env: Readonly<Record<string, string>> = {}) => {
  const nats = await startNats()
  const rest = await startService({ natsUrl: nats.url, roles: "gateway,projection,fanout,tally" })
  const work = () => startService({ natsUrl: nats.url, roles: "delivery", env })
  const workers = [await work(), await work()]
  return {
    url: rest.url,
    work,
    /** The one that has seen it, and the one that has been told. */
    whoSaw: async (words: RegExp) => {
      const first = await until(
        () => Promise.resolve(workers.findIndex(({ output }) => words.test(output()))),
        (index) => index >= 0
      )
      return [workers[first]!, workers[1 - first]!] as const
    },
    workers,
    [Symbol.asyncDispose]: async () => {
      for (const each of [...workers, rest]) await each[Symbol.asyncDispose]()
      await nats.stop()
    }
  }
}

describe("a worker whose credentials were refused", () => {
  it("keeps the others from more than a probe, and those that start later; the first that is let in tells them", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    await using service = await startWorkers({ BELLCAST_BREAKER_OPEN_MILLIS: "8000" })
    let refusing = true
    const agent = push.subscribe()
    const next = agent.nextAnswer
    Object.assign(agent, { nextAnswer: () => (refusing ? refuse(403, "BadJwtToken") : next()) })
    await join([service.url], "news", [agent.subscription])
    const first = await publish(service.url, "news", { n: 1 })
    const [saw, told] = await service.whoSaw(/refuses our credentials \(/)
    await says(told, /refuses our credentials, another worker says/)
    await using late = await service.work()
    await says(late, /refuses our credentials, another worker says/)
    await saw.stop()
    const second = await publish(service.url, "news", { n: 2 })
    await until(
      () => progress(service.url, second),
      ({ retrying }) => retrying === 1
    )
    // Each of the three may ask with its one user once, for one that is let in.
    assert.isAtMost(push.requests, 3)
    refusing = false
    for (const broadcast of [first, second])
      assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), { delivered: 1 })
    // One of the two has seen it, the other has been told.
    for (const each of [told, late]) await says(each, /takes our credentials again/)
    for (const each of [saw, told, late]) assert.notMatch(each.output(), /wpush|vapid t=/)
  })
})

describe("a worker that was throttled", () => {
  it("slows and stops the other", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    await using service = await startWorkers({ BELLCAST_PUSHES_UNDER_WAY_MAX: "4" })
    let throttling = true
    const agents = Array.from({ length: 40 }, () => push.subscribe())
    for (const agent of agents) {
      const next = agent.nextAnswer
      Object.assign(agent, {
        nextAnswer: () => (throttling ? reply(429, () => ({ "retry-after": "4" })) : next())
      })
    }
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const first = await publish(service.url, "news", { n: 1 })
    const [, told] = await service.whoSaw(
      /throttles us: 2 pushes at a time from now on, and none for 4 s/
    )
    await says(told, /throttles another worker: at most 2 pushes at a time/)
    throttling = false
    const asked = push.requests
    const second = await publish(service.url, "news", { n: 2 })
    await until(
      () => progress(service.url, second),
      ({ retrying }) => retrying === 40
    )
    assert.equal(
      push.requests,
      asked,
      "nobody asked while the push service wanted to be left alone"
    )
    for (const broadcast of [first, second])
      assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), { delivered: 40 })
  })
})

describe("two workers that hear 410 from everybody", () => {
  it("stop believing it together: not more than 50, what both are told late, and what is under way", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    await using service = await startWorkers({
      BELLCAST_PUSHES_UNDER_WAY_MAX: "2",
      BELLCAST_SHARDS_IN_FLIGHT: "1"
    })
    const channels = ["a", "b", "c", "d", "e", "f"]
    for (const channel of channels) {
      const agents = Array.from({ length: 100 }, () => push.subscribe({ script: ["410"] }))
      for (const [i, { subscription }] of agents.entries()) {
        await call(service.url, "POST", "/subscriptions", `${channel}${i}`, { data: subscription })
        await call(service.url, "PUT", `/channels/${channel}/registration`, `${channel}${i}`)
      }
    }
    const broadcasts = await Promise.all(
      channels.map(
        async (channel) => [channel, await publish(service.url, channel, { n: 1 })] as const
      )
    )
    let gone = 0
    for (const [channel, broadcast] of broadcasts) {
      const counts = await until(
        async () =>
          (
            await call(
              service.url,
              "GET",
              `/channels/${channel}/broadcasts/${broadcast}`,
              "publisher"
            )
          ).body.data,
        ({ gone, retrying }) => gone + retrying === 100
      )
      gone += counts.gone
    }
    for (const each of service.workers)
      await says(each, /says of most subscriptions that they are gone/)
    // By itself each would remove 49. Each may remove nine that the other has not heard of, and what comes in while the news are on their way.
    assert.isAtMost(gone, 80)
  })
})
