// A push service that refuses our credentials, and answers that deserve a second try, in the
// running service. The cases share a service; each has a push service, a channel and users of its
// own.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { pushesOf } from "../support/audit.ts"
import { finished, joinAll, publish } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { refuse } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"
import type { UserAgent } from "../support/user-agent.ts"

let nats: TestNats
let service: Service

beforeAll(async () => {
  nats = await startNats()
  const env = { BELLCAST_BREAKER_OPEN_MILLIS: "1000", BELLCAST_PUSHES_UNDER_WAY_MAX: "1" }
  service = await startService({ natsUrl: nats.url, env })
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

/** Calls `seen` with each request to an agent before the request is answered. */
const watch = (
  agent: UserAgent,
  seen: (request: Parameters<ReturnType<UserAgent["nextAnswer"]>["play"]>[0]) => void
) => {
  agent.answerBy((next) => {
    const answer = next()
    const play: typeof answer.play = (request, response) => {
      seen(request)
      answer.play(request, response)
    }
    return { ...answer, play }
  })
}

describe("a push service that refuses our credentials", () => {
  it("gets only probes; removes no subscription, counts no attempt, delivers later", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    // The first push is refused, and so are the first three probes.
    let left = 4
    const agents = Array.from({ length: 30 }, () => push.subscribe())
    for (const agent of agents)
      agent.answerBy((next) => (left-- > 0 ? refuse(403, "BadJwtToken") : next()))
    await joinAll(service.url, "refused", agents)
    const before = service.output().length
    const lines = (words: RegExp) =>
      service
        .output()
        .slice(before)
        .split("\n")
        .filter((line) => words.test(line))
    const broadcast = await publish(service.url, "refused", { n: 1 })
    const counts = await finished(service.url, "refused", broadcast)
    assert.deepInclude(counts, { accepted: 30, delivered: 30, gone: 0, dead: 0, expired: 0 })
    assert.equal(push.requests, 34)
    assert.deepEqual(push.faults, [])
    const opened = lines(/refuses our credentials/)
    assert.lengthOf(opened, 1)
    for (const line of opened) assert.notMatch(line, /wpush|vapid t=/)
    assert.lengthOf(lines(/takes our credentials again/), 1)
    const pushes = await pushesOf(nats.url, broadcast)
    assert.deepEqual(new Set(pushes.map(({ attempts }) => attempts)), new Set([1]))
  })

  it("does not make us sign a second token within the hour", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    const tokens = new Set<string | undefined>()
    const agents = Array.from({ length: 5 }, () => push.subscribe({ script: ["401", "201"] }))
    for (const agent of agents) watch(agent, ({ headers }) => tokens.add(headers.authorization))
    await joinAll(service.url, "tokens", agents)
    const broadcast = await publish(service.url, "tokens", { n: 1 })
    const counts = await finished(service.url, "tokens", broadcast)
    assert.deepInclude(counts, { accepted: 5, delivered: 5 })
    assert.equal(push.requests, 10)
    assert.equal(tokens.size, 1)
  })
})

describe("an answer that deserves a second try", () => {
  it("gets one at once: after 421 over another connection, after a refused Topic without it", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const badTopic = '400 {"reason":"BadWebPushTopic"}'
    const scripts = [["421", "201"], ["421"], [badTopic, "201"], [badTopic]]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const sockets: Array<unknown> = []
    const misdirected = agents[0]!
    watch(misdirected, ({ socket }) => sockets.push(socket))
    await joinAll(service.url, "again", agents)
    const broadcast = await publish(service.url, "again", { n: 1 }, { topic: "weather" })
    assert.deepInclude(await finished(service.url, "again", broadcast), {
      accepted: 4,
      delivered: 2,
      dead: 2
    })
    assert.deepEqual(
      agents.map(({ attempts }) => attempts.length),
      [2, 2, 2, 2]
    )
    assert.isDefined(misdirected.received[0]?.headers["topic"])
    assert.isUndefined(agents[2]!.received[0]?.headers["topic"])
    assert.equal(new Set(sockets).size, 2)
    const reasons = (await pushesOf(nats.url, broadcast)).map(({ reason }) => reason)
    assert.deepEqual(reasons.sort(), ["accepted", "accepted", "bad-topic", "unexpected"])
  })
})
