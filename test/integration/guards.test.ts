// Protection of subscriptions, and of a push service in trouble, in the running service.
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { Watermark } from "#nats/follower/watermark.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { refuse } from "../support/push-script.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { spawnCli } from "../support/spawn-cli.ts"

const progress = async (base: string, broadcast: string) =>
  (await call(base, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")).body.data

const lines = (output: string, words: RegExp) =>
  output.split("\n").filter((line) => words.test(line))

/** How many of the users still hold a subscription. */
const subscribed = async (base: string, users: number) => {
  const lists = await Promise.all(
    Array.from({ length: users }, (_, i) => call(base, "GET", "/subscriptions", `user${i}`))
  )
  return lists.filter(({ body }) => body.data.length === 1).length
}

/**
 * Stores every subscription again as if long ago: an error of one made today may be due to a key
 * rotation.
 */
const age = (natsUrl: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    let last = 0
    yield* log.replay("log", [filters.subscriptions], ({ message, subject }) => {
      if (message.type !== "subscription.put/1") return Effect.void
      const { type, ...body } = message
      return log.append("log", { subject, type, body: { ...body, lastModified: 1 } }).pipe(
        Effect.tap(({ seq }) =>
          Effect.sync(() => {
            last = seq
          })
        ),
        Effect.asVoid,
        Effect.orDie
      )
    })
    yield* (yield* Watermark).reached(last, 10_000)
  }).pipe(Effect.provide(natsLayer({ url: natsUrl, name: "test" })), Effect.runPromise)

describe("a push service that says 410 to everybody", () => {
  it("costs at most 50 of 200 subscriptions; the pushes to the others wait", {
    timeout: 90_000
  }, async () => {
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
    const agents = Array.from({ length: 300 }, (_, i) =>
      push.subscribe({ script: [i < 5 ? "410" : "201"] })
    )
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

describe("a push service that refuses our credentials", () => {
  it("gets only probes; removes no subscription, counts no attempt, delivers later", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_BREAKER_OPEN_MILLIS: "1000", BELLCAST_PUSHES_UNDER_WAY_MAX: "1" }
    })
    // The first push is refused, and so are the first three probes.
    let left = 4
    const agents = Array.from({ length: 30 }, () => push.subscribe())
    for (const agent of agents) {
      const next = agent.nextAnswer
      Object.assign(agent, { nextAnswer: () => (left-- > 0 ? refuse(403, "BadJwtToken") : next()) })
    }
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const broadcast = await publish(service.url, "news", { n: 1 })
    const counts = await finished(service.url, "news", broadcast)
    assert.deepInclude(counts, { accepted: 30, delivered: 30, gone: 0, dead: 0, expired: 0 })
    assert.equal(push.requests, 34)
    assert.deepEqual(push.faults, [])
    const opened = lines(service.output(), /refuses our credentials/)
    assert.lengthOf(opened, 1)
    for (const line of opened) assert.notMatch(line, /wpush|vapid t=/)
    assert.lengthOf(lines(service.output(), /takes our credentials again/), 1)
    await using audit = spawnCli(["audit", broadcast, "--json"], { BELLCAST_NATS_URL: nats.url })
    assert.equal(await audit.exit(), 0, audit.output.stderr)
    assert.deepEqual(
      new Set(
        JSON.parse(audit.output.stdout).pushes.map(({ attempts }: { attempts: number }) => attempts)
      ),
      new Set([1])
    )
  })

  it("does not make us sign a second token within the hour", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_BREAKER_OPEN_MILLIS: "1000" }
    })
    const tokens = new Set<string | undefined>()
    const agents = Array.from({ length: 5 }, () => push.subscribe({ script: ["401", "201"] }))
    for (const agent of agents) {
      const next = agent.nextAnswer
      const nextAnswer = () => {
        const answer = next()
        const play: typeof answer.play = (request, response) => {
          tokens.add(request.headers.authorization)
          answer.play(request, response)
        }
        return { ...answer, play }
      }
      Object.assign(agent, { nextAnswer })
    }
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    assert.deepInclude(
      await finished(service.url, "news", await publish(service.url, "news", { n: 1 })),
      { accepted: 5, delivered: 5 }
    )
    assert.equal(push.requests, 10)
    assert.equal(tokens.size, 1)
  })
})

describe("a subscription made with another key", () => {
  it("is removed when the push service takes our key from others, and only then", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_BREAKER_OPEN_MILLIS: "600000" }
    })
    const mismatch = '403 {"reason":"VapidPkHashMismatch"}'
    const agents = [
      ...Array.from({ length: 3 }, () => push.subscribe()),
      push.subscribe({ script: ["201", mismatch] })
    ]
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
    await age(nats.url)
    const second = await finished(service.url, "news", await publish(service.url, "news", { n: 2 }))
    assert.deepInclude(second, { accepted: 4, delivered: 3, gone: 1 })
    assert.equal(
      await until(
        () => subscribed(service.url, 4),
        (count) => count === 3
      ),
      3
    )

    await using other = await startPushService()
    const wrong = Array.from({ length: 3 }, () => other.subscribe({ script: [mismatch] }))
    await join(
      [service.url],
      "other",
      wrong.map(({ subscription }) => subscription)
    )
    const third = await publish(service.url, "other", { n: 3 })
    await until(
      async () =>
        (await call(service.url, "GET", `/channels/other/broadcasts/${third}`, "publisher")).body
          .data,
      ({ retrying }) => retrying === 3
    )
    assert.lengthOf(
      lines(service.output(), /refuses our credentials \(key-mismatch, status 403\)/),
      1
    )
  })
})

describe("an answer that deserves a second try", () => {
  it("gets one at once: after 421 over another connection, after a refused Topic without it", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({
      natsUrl: nats.url,
      env: { BELLCAST_PUSHES_UNDER_WAY_MAX: "1" }
    })
    const badTopic = '400 {"reason":"BadWebPushTopic"}'
    const scripts = [["421", "201"], ["421"], [badTopic, "201"], [badTopic]]
    const agents = scripts.map((script) => push.subscribe({ script }))
    const sockets: Array<unknown> = []
    const misdirected = agents[0]!
    const next = misdirected.nextAnswer
    Object.assign(misdirected, {
      nextAnswer: () => {
        const answer = next()
        const play: typeof answer.play = (request, response) => {
          sockets.push(request.socket)
          answer.play(request, response)
        }
        return { ...answer, play }
      }
    })
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const broadcast = await publish(service.url, "news", { n: 1 }, { topic: "weather" })
    assert.deepInclude(await finished(service.url, "news", broadcast), {
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
    await using audit = spawnCli(["audit", broadcast, "--json"], { BELLCAST_NATS_URL: nats.url })
    assert.equal(await audit.exit(), 0, audit.output.stderr)
    const reasons = JSON.parse(audit.output.stdout).pushes.map(
      ({ reason }: { reason: string }) => reason
    )
    assert.deepEqual(reasons.sort(), ["accepted", "accepted", "bad-topic", "unexpected"])
  })
})
