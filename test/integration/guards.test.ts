// Protection of subscriptions from a push service that says 410, and from other keys, in the
// running service. The cases share a service; each has a push service, a channel and users of its
// own.
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { Watermark } from "#nats/follower/watermark.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import { call, finished, joinAll, publish, until } from "../support/client.ts"
import { startNats, type TestNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { type Service, startService } from "../support/service.ts"

let nats: TestNats
let service: Service

beforeAll(async () => {
  nats = await startNats()
  const env = { BELLCAST_BREAKER_OPEN_MILLIS: "600000" }
  service = await startService({ natsUrl: nats.url, env })
})
afterAll(async () => {
  await service?.[Symbol.asyncDispose]()
  await nats?.[Symbol.asyncDispose]()
})

const progress = async (channel: string, broadcast: string) =>
  (await call(service.url, "GET", `/channels/${channel}/broadcasts/${broadcast}`, "publisher")).body
    .data

const sent = async (channel: string) =>
  finished(service.url, channel, await publish(service.url, channel, { n: 1 }))

const lines = (words: RegExp) =>
  service
    .output()
    .split("\n")
    .filter((line) => words.test(line))

/** How many of the users of a channel still hold a subscription. */
const subscribed = async (channel: string, users: number) => {
  const lists = await Promise.all(
    Array.from({ length: users }, (_, i) =>
      call(service.url, "GET", "/subscriptions", `${channel}${i}`)
    )
  )
  return lists.filter(({ body }) => body.data.length === 1).length
}

const untilSubscribed = async (channel: string, users: number, expected: number) =>
  assert.equal(
    await until(
      () => subscribed(channel, users),
      (count) => count === expected
    ),
    expected
  )

/**
 * Stores the subscriptions at a push service again as if long ago: an error of one made today may
 * be due to a key rotation.
 */
const age = (origin: string) =>
  Effect.gen(function* () {
    const log = yield* EventLog
    let last = 0
    yield* log.replay("log", [filters.subscriptions], ({ message, subject }) => {
      if (message.type !== "subscription.put") return Effect.void
      if (!message.data.endpoint.startsWith(origin)) return Effect.void
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
  }).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })), Effect.runPromise)

describe("a push service that says 410 to 5 of 150", () => {
  it("loses those 5 at the first answer", { timeout: 90_000 }, async () => {
    await using push = await startPushService()
    const agents = Array.from({ length: 150 }, (_, i) =>
      push.subscribe({ script: [i < 5 ? "410" : "201"] })
    )
    await joinAll(service.url, "few", agents)
    assert.deepInclude(await sent("few"), { accepted: 150, delivered: 145, gone: 5 })
    assert.equal(push.requests, 150)
    await untilSubscribed("few", 150, 145)
  })
})

describe("a subscription made with another key", () => {
  it("is removed when the push service takes our key from others, and only then", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const mismatch = '403 {"reason":"VapidPkHashMismatch"}'
    await joinAll(service.url, "key", [
      ...Array.from({ length: 3 }, () => push.subscribe()),
      push.subscribe({ script: ["201", mismatch] })
    ])
    await sent("key")
    await age(push.origin)
    assert.deepInclude(await sent("key"), { accepted: 4, delivered: 3, gone: 1 })
    await untilSubscribed("key", 4, 3)

    await using other = await startPushService()
    const wrong = Array.from({ length: 3 }, () => other.subscribe({ script: [mismatch] }))
    await joinAll(service.url, "other", wrong)
    const third = await publish(service.url, "other", { n: 3 })
    await until(
      () => progress("other", third),
      ({ retrying }) => retrying === 3
    )
    assert.lengthOf(lines(/refuses our credentials \(key-mismatch, status 403\)/), 1)
  })
})

// The last: its pushes are tried again until the service ends.
describe("a push service that says 410 to everybody", () => {
  it("costs at most 50 of 120 subscriptions; the pushes to the others wait", {
    timeout: 90_000
  }, async () => {
    await using push = await startPushService()
    const agents = Array.from({ length: 120 }, () => push.subscribe({ script: ["410"] }))
    await joinAll(service.url, "all", agents)
    const broadcast = await publish(service.url, "all", { n: 1 })
    const counts = await until(
      () => progress("all", broadcast),
      ({ gone, retrying }) => gone + retrying === 120
    )
    assert.isAtMost(counts.gone, 50)
    assert.deepInclude(counts, { accepted: 120, dead: 0, expired: 0, waiting: 0, finished: false })
    await untilSubscribed("all", 120, 120 - counts.gone)
    assert.lengthOf(lines(/says of most subscriptions that they are gone/), 1)
    assert.equal(push.requests, 120)
  })
})
