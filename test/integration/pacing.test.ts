// Sending to a push service that throttles or does not respond, in the running service.
import { assert, describe, it } from "vitest"
import { pushesOf } from "../support/audit.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { playerOf, reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { useService } from "../support/use-service.ts"

const progress = async (base: string, broadcast: string) =>
  (await call(base, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")).body.data

const lines = (output: string, words: RegExp) =>
  output.split("\n").filter((line) => words.test(line))

const shared = useService({ env: { BELLCAST_PUSHES_UNDER_WAY_MAX: "4" } })

describe("a push service that throttles everybody", () => {
  it("gets no push until Retry-After, then every push, and no wait counts as an attempt", {
    timeout: 90_000
  }, async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    let throttledUntil = Number.POSITIVE_INFINITY
    const agents = Array.from({ length: 100 }, () => push.subscribe())
    const slowDown = reply(429, () => ({ "retry-after": "2" }))
    for (const agent of agents)
      agent.answerBy((next) => {
        throttledUntil = Math.min(throttledUntil, Date.now() + 1_500)
        return Date.now() < throttledUntil ? slowDown : next()
      })
    const subscriptions = agents.map(({ subscription }) => subscription)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const broadcast = await publish(service.url, "news", { n: 1 })
    assert.deepInclude(await finished(service.url, "news", broadcast), {
      accepted: 100,
      delivered: 100,
      dead: 0,
      expired: 0
    })
    // Five stop all others; at most the other connections' pushes are on their way.
    const throttled = agents.filter(({ attempts }) => attempts[0]?.status === 429).length
    assert.isTrue(throttled >= 5 && throttled <= 8, `${throttled} were throttled`)
    assert.equal(push.requests, 100 + throttled)
    assert.lengthOf(lines(service.output(), /throttles us/), 1)
    const firsts = (await pushesOf(nats.url, broadcast)).filter(({ attempts }) => attempts === 1)
    assert.equal(firsts.length, 100 - throttled)
  })
})

describe("a push service that throttles without saying for how long", () => {
  it("gets half as many at a time, one more each second, and others do not wait for it", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using other = await startPushService()
    const env = { BELLCAST_PUSHES_UNDER_WAY_MAX: "8", BELLCAST_UNRECORDED_PUSHES_MAX: "32" }
    await using service = await startService({ natsUrl: nats.url, env })
    const slow = playerOf(["slow 30"])()
    let throttled = 0
    let underWay = 0
    let fullAt = Number.POSITIVE_INFINITY
    const tooMany: Array<number> = []
    const agents = Array.from({ length: 200 }, () => push.subscribe())
    for (const agent of agents) {
      const play: typeof slow.play = (request, response) => {
        underWay += 1
        response.once("close", () => {
          underWay -= 1
        })
        // Pushes that were under way when the fifth was throttled may end first.
        const secondsSince = (Date.now() - fullAt) / 1000
        if (secondsSince > 0.5 && underWay > 4 + secondsSince) tooMany.push(underWay)
        slow.play(request, response)
      }
      agent.answerBy(() => {
        if (++throttled > 5) return { ...slow, play }
        fullAt = Date.now()
        return reply(429)
      })
    }
    const others = Array.from({ length: 40 }, () => other.subscribe())
    const subscriptions = [...agents, ...others].map(({ subscription }) => subscription)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const broadcast = await publish(service.url, "news", { n: 1 })
    await other.waitFor(({ counts }) => counts.distinct === 40)
    // The pushes to both are in a random order. If those to `other` waited for the throttled ones,
    // the last of the 40 would come with about the 195th of the 200.
    assert.isBelow(push.requests, 165, "the others wait for the throttled ones")
    assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), {
      accepted: 240,
      delivered: 240
    })
    assert.deepEqual(tooMany, [])
    assert.equal(push.requests, 205)
    assert.lengthOf(lines(service.output(), /throttles us: 4 pushes at a time from now on"/), 1)
  })
})

describe("a push service that does not answer", () => {
  it("is told of though there is but one subscription to try, by its host alone", {
    timeout: 60_000
  }, async () => {
    const { service } = shared
    await using push = await startPushService()
    const agent = push.subscribe()
    let away = true
    const [reset, taken] = [playerOf(["reset"])(), playerOf(["201"])()]
    agent.answerBy(() => (away ? reset : taken))
    await join([service.url], "one", [agent.subscription])
    const broadcast = await publish(service.url, "one", { n: 1 })
    const warning = /cannot be reached \(reset\): its pushes are tried again/
    const said = (pattern: RegExp) =>
      until(
        async () => lines(service.output(), pattern),
        ({ length }) => length > 0
      )
    await said(warning)
    away = false
    assert.deepInclude(await finished(service.url, "one", broadcast), {
      accepted: 1,
      delivered: 1
    })
    assert.lengthOf(await said(/is reached again/), 1)
    assert.lengthOf(await said(warning), 1)
    assert.notInclude(service.output(), new URL(agent.subscription.endpoint).pathname)
  })

  it("gets one probe at a time; waits are no attempts; all pushes arrive later", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_PUSHES_UNDER_WAY_MAX: "1" }
    })
    let away = true
    const agents = Array.from({ length: 100 }, () => push.subscribe())
    for (const agent of agents) {
      const [reset, taken] = [playerOf(["reset"])(), playerOf(["201"])()]
      agent.answerBy(() => (away ? reset : taken))
    }
    const subscriptions = agents.map(({ subscription }) => subscription)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const broadcast = await publish(service.url, "news", { n: 1 })
    await until(
      () => progress(service.url, broadcast),
      ({ retrying }) => retrying === 100
    )
    // Five, and the probes since: after 0.2 s, 0.4 s, 0.8 s ...
    assert.isAtMost(push.requests, 10)
    assert.match(
      (await call(service.url, "GET", "/__metrics__")).body,
      /^bellcast_push_service_connectivity_state\{host="other"\} [12]$/m
    )
    away = false
    assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), {
      accepted: 100,
      delivered: 100
    })
    assert.lengthOf(lines(service.output(), /cannot be reached \(reset\)/), 1)
    assert.lengthOf(lines(service.output(), /is reached again/), 1)
    const firsts = (await pushesOf(nats.url, broadcast)).filter(({ attempts }) => attempts === 1)
    assert.isAtLeast(firsts.length, 90)
  })
})
