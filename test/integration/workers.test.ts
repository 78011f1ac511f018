// What one delivery worker learns about a push service applies to the others, also to later ones.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { refuse, reply } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { settled } from "../support/quiet.ts"
import { says, startWorkers } from "../support/workers.ts"

const openMillis = 8_000
const pauseSeconds = 6

let service: Awaited<ReturnType<typeof startWorkers>>

beforeAll(async () => {
  service = await startWorkers({
    BELLCAST_BREAKER_OPEN_MILLIS: String(openMillis),
    BELLCAST_PUSHES_UNDER_WAY_MAX: "4"
  })
})
afterAll(() => service?.[Symbol.asyncDispose]())

const progress = async (broadcast: string) =>
  (await call(service.url, "GET", `/broadcasts/${broadcast}`, "publisher")).body.data

describe("a worker that was throttled", () => {
  it("slows and stops the other", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    let throttling = true
    const agents = Array.from({ length: 40 }, () => push.subscribe())
    const refusal = reply(429, () => ({ "retry-after": `${pauseSeconds}` }))
    for (const agent of agents) agent.answerBy((next) => (throttling ? refusal : next()))
    await join(
      [service.url],
      "throttled",
      agents.map(({ subscription }) => subscription)
    )
    const first = await publish(service.url, "throttled", { n: 1 })
    const [, told] = await service.whoSaw(
      /throttles us: 2 pushes at a time from now on, and none for 6 s/
    )
    await says(told, /throttles another worker: at most 2 pushes at a time/)
    throttling = false
    // Pushes that were sent before that still arrive.
    await settled(() => push.requests, 300)
    const toldAt = Date.now()
    const second = await publish(service.url, "throttled", { n: 2 })
    // All wait, or are sent after the pause: on a busy machine it may be over before they come.
    await until(
      () => progress(second),
      ({ delivered, retrying }) => retrying + delivered === 40
    )
    const asked = agents
      .flatMap(({ attempts }) => attempts.map(({ at }) => at))
      .sort((a, b) => a - b)
    // The fifth refusal narrows the window, and the pause begins then or later.
    const pauseEnds = asked[4]! + pauseSeconds * 1_000
    assert.deepEqual(
      asked.filter((at) => at > toldAt && at < pauseEnds),
      [],
      "nobody asked while the push service wanted to be left alone"
    )
    for (const broadcast of [first, second])
      assert.deepInclude(await finished(service.url, "throttled", broadcast, 40_000), {
        delivered: 40
      })
  })
})

// The last: it stops a worker.
describe("a worker whose credentials were refused", () => {
  it("limits the others to probes, also later ones; the first accepted probe opens it for all", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    let refusing = true
    const agent = push.subscribe()
    agent.answerBy((next) => (refusing ? refuse(403, "BadJwtToken") : next()))
    await join([service.url], "refused", [agent.subscription], 1, "refused")
    const first = await publish(service.url, "refused", { n: 1 })
    const [saw, told] = await service.whoSaw(/refuses our credentials \(/)
    await says(told, /refuses our credentials, another worker says/)
    await using late = await service.work()
    // On a busy machine its own request is refused before it is told.
    await says(late, /refuses our credentials/)
    await saw.stop()
    const second = await publish(service.url, "refused", { n: 2 })
    await until(
      () => progress(second),
      ({ retrying }) => retrying === 1
    )
    // Each of the three may ask with its one user once while the breaker is open, and once more
    // each time that it was open for so long: on a busy machine that happens.
    const openings = Math.ceil((Date.now() - agent.attempts[0]!.at) / openMillis)
    assert.isAtMost(push.requests, 3 * openings)
    refusing = false
    for (const broadcast of [first, second])
      assert.deepInclude(await finished(service.url, "refused", broadcast, 40_000), {
        delivered: 1
      })
    // One of the two has seen it, the other has been told.
    for (const each of [told, late]) await says(each, /takes our credentials again/)
    for (const each of [saw, told, late]) assert.notMatch(each.output(), /wpush|vapid t=/)
  })
})
