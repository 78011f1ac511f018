// The state of a push service in one process: how guard, breakers and pacing work together, and its
// gossip to other workers.
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { vi } from "vitest"
import type { ResponseResult } from "#delivery/push/attempt-result.ts"
import type { Push } from "#delivery/push-service/push.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import type { RetryReason } from "#domain/reason.ts"

const now = 1_800_000_000_000
const minute = 60_000

/** A push to the only subscription of a user, which has been there for ever. */
const pushTo = (user: string, more: Partial<Push> = {}): Push => ({
  ...{ user, subscription: `${user}.id`, generation: 1, broadcast: 2, saidGone: false },
  ...{ acceptedAt: now, storedAt: 0, sentAt: now },
  ...more
})
const someone = pushTo("someone")

describe("a lane", () => {
  const accepted: ResponseResult = { kind: "accepted", reason: "accepted" }
  const gone: ResponseResult = { kind: "gone", reason: "gone" }
  const credentials: ResponseResult = { kind: "credentials", reason: "credentials" }
  const mismatch: ResponseResult = { kind: "mismatch", reason: "key-mismatch" }
  const throttled: ResponseResult = { kind: "retry", reason: "throttled", retryAfterMillis: 30_000 }
  const laneOf = () =>
    new PushService("https://push.example.com:8443", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const push = (i: number, acceptedAt = now, sentAt = now, storedAt = 0) =>
    pushTo(`user${i}`, { acceptedAt, sentAt, storedAt })

  it("defers the 50th 410 without a success for 1 minute, later for up to 15 minutes", () => {
    const lane = laneOf()
    for (let i = 0; i < 49; i++)
      assert.deepEqual(lane.judge(gone, push(i), 410, now), { judged: gone, notices: [] })
    const held = (ageMillis: number) => {
      const { judged } = lane.judge(gone, push(50, now - ageMillis), 410, now)
      return judged.kind === "deferred" && judged.reason === "mass-gone"
        ? judged.until - now
        : undefined
    }
    assert.strictEqual(held(0), minute)
    assert.strictEqual(held(20 * minute), 5 * minute)
    assert.strictEqual(held(600 * minute), 15 * minute)
  })

  it("takes a mismatch for the subscription's with a proof, for ours without", () => {
    const lane = laneOf()
    assert.isTrue(lane.doubtsToken(credentials, now))
    assert.isFalse(lane.doubtsToken(mismatch, now), "every token names the same key")
    lane.judge(accepted, push(0), 201, now)
    assert.deepEqual(lane.judge(mismatch, push(1), 403, now).judged, {
      kind: "gone",
      reason: "key-mismatch"
    })
    const ofToday = push(2, now, now, now - 60 * minute)
    assert.deepEqual(
      lane.judge(mismatch, ofToday, 403, now).judged,
      mismatch,
      "made with a key that this process may not have yet"
    )
    const other = laneOf()
    assert.deepEqual(other.judge(mismatch, push(1), 403, now).judged, {
      kind: "deferred",
      reason: "key-mismatch",
      until: now + 1_000
    })
    const again = other.deferral(push(1), now + 1_000)
    assert.deepInclude(again, { reason: "breaker-open", until: now + minute })
  })

  it("goes on for the others while one user has many subscriptions of another key", () => {
    const lane = laneOf()
    lane.judge(accepted, push(0), 201, now)
    for (let i = 1; i <= 20; i++)
      assert.deepEqual(
        lane.judge(mismatch, push(i, now, now, now - minute), 403, now).judged,
        mismatch
      )
    assert.strictEqual(lane.stateAt(now).breaker, "closed")
    assert.isUndefined(lane.deferral(someone, now))
  })

  it("does not remove by mismatch what would be a mass removal", () => {
    const lane = laneOf()
    lane.judge(accepted, push(0), 201, now)
    const fates = Array.from(
      { length: 100 },
      (_, i) => lane.judge(mismatch, push(i), 403, now).judged.kind
    )
    assert.strictEqual(fates.filter((each) => each === "gone").length, 48)
  })

  it("names host and reason once when it closes, and never a subscription", () => {
    const lane = laneOf()
    const notices = Array.from(
      { length: 10 },
      (_, i) => lane.judge(credentials, push(i), 403, now).notices
    ).flat()
    assert.deepEqual(notices, [
      {
        level: "error",
        text: "push.example.com refuses our credentials (credentials, status 403): pushes to it wait"
      }
    ])
    const held = lane.deferral(someone, now)
    assert.deepInclude(held as object, { kind: "deferred", reason: "breaker-open" })
    assert.isAtMost(held!.until, now + minute)
    assert.deepEqual(
      lane.judge(accepted, push(1), 201, now).notices.map(({ level }) => level),
      ["info"]
    )
    assert.isUndefined(lane.deferral(someone, now))
  })

  it("closes for throttled pushes, which count as attempts; those it holds do not", () => {
    const lane = laneOf()
    for (let i = 0; i < 5; i++)
      assert.deepEqual(lane.judge(throttled, push(i), 429, now).judged, throttled)
    assert.deepEqual(lane.deferral(someone, now + 1), {
      kind: "deferred",
      reason: "lane-throttled",
      until: now + 30_000
    })
    assert.isUndefined(lane.deferral(someone, now + 30_000))
  })

  it("has no more pushes under way than its connections carry", async () => {
    const lane = laneOf()
    let room = 3
    let open = 0
    const enter = () =>
      void Effect.runFork(
        lane.inTurn(
          () => room,
          Effect.suspend(() => {
            open += 1
            return Effect.never
          })
        )
      )
    for (let i = 0; i < 20; i++) enter()
    assert.strictEqual(open, 3)
    room = 5
    enter()
    await vi.waitFor(() => assert.strictEqual(open, 5))
    assert.isUndefined(lane.queueFull(now, now), "a narrow push service is not a slowed one")
  })

  it("turns pushes away only when it is slowed and its line is full", async () => {
    const lane = laneOf()
    const open: Array<() => void> = []
    const enter = () =>
      void Effect.runFork(
        lane.inTurn(
          () => 512,
          Effect.promise(() => new Promise<void>((resolve) => open.push(resolve)))
        )
      )
    for (let i = 0; i < 20; i++) enter()
    assert.strictEqual(open.length, 8)
    assert.isUndefined(lane.queueFull(now, now))
    for (let i = 0; i < 5; i++) lane.judge(throttled, push(i), 429, now)
    assert.deepEqual(lane.queueFull(now - 40_000, now), {
      kind: "deferred",
      reason: "lane-slow",
      until: now + 10_000
    })
    for (let i = 0; i < 8; i++) open[i]!()
    await Effect.runPromise(Effect.sleep(1))
    // Four more got in, eight stand in line: that is full; one less is not.
    assert.strictEqual(open.length, 12)
    assert.isDefined(lane.queueFull(now, now))
    open[8]!()
    await Effect.runPromise(Effect.sleep(1))
    assert.strictEqual(open.length, 13)
    assert.isUndefined(lane.queueFull(now, now))
  })
})

describe("a lane without answers", () => {
  const failure = (reason: RetryReason): ResponseResult => ({ kind: "retry", reason })
  const laneOf = () =>
    new PushService("https://push.example.com", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const failing = (lane: ReturnType<typeof laneOf>, classified: ResponseResult) =>
    Array.from({ length: 8 }, (_, i) => lane.failed(classified, pushTo(`s${i}`), now)).flat()

  it("defers pushes without gossip, logs once, and goes on with the first response", () => {
    const lane = laneOf()
    assert.deepEqual(failing(lane, failure("timeout")), [
      { level: "warn", text: "push.example.com cannot be reached (timeout): pushes to it wait" }
    ])
    assert.deepEqual(lane.deferral(someone, now), {
      kind: "deferred",
      reason: "unreachable",
      until: now + 10_000
    })
    assert.isUndefined(lane.takeGossip("w", now))
    const { notices } = lane.judge(failure("server-error"), pushTo("s"), 500, now + 10_000)
    assert.deepEqual(notices, [{ level: "info", text: "push.example.com is reached again" }])
    assert.isUndefined(lane.deferral(someone, now + 10_000))
  })

  it("says so once where it is one subscription's pushes, and holds none back", () => {
    const lane = laneOf()
    const push = pushTo("s")
    const notices = Array.from({ length: 8 }, () =>
      lane.failed(failure("refused"), push, now)
    ).flat()
    assert.deepEqual(notices, [
      {
        level: "warn",
        text: "push.example.com cannot be reached (refused): its pushes are tried again"
      }
    ])
    assert.isUndefined(lane.deferral(someone, now))
    assert.deepEqual(lane.judge({ kind: "accepted", reason: "accepted" }, push, 201, now).notices, [
      { level: "info", text: "push.example.com is reached again" }
    ])
  })

  it("goes on for names that do not exist, and for pushes that could never be sent", () => {
    const lane = laneOf()
    assert.deepEqual(failing(lane, failure("unknown-host")), [])
    assert.deepEqual(failing(lane, { kind: "dead", reason: "endpoint-not-allowed" }), [])
    assert.deepEqual(failing(lane, failure("address-not-allowed")), [])
    assert.isUndefined(lane.deferral(someone, now))
    assert.strictEqual(failing(lane, failure("tls"))[0]?.level, "error")
  })
})

describe("what a worker tells of a lane", () => {
  const throttled: ResponseResult = { kind: "retry", reason: "throttled", retryAfterMillis: 30_000 }
  const credentials: ResponseResult = { kind: "credentials", reason: "credentials" }
  const laneOf = () =>
    new PushService("https://push.example.com", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const push = (i: number) => pushTo(`user${i}`)
  const nothing = {
    worker: "w",
    origin: "https://push.example.com",
    key: "k1",
    answers: 0,
    gone: 0,
    holds: false
  }

  it("is nothing while there is nothing to tell", () => {
    assert.isUndefined(laneOf().takeGossip("w", now))
    assert.isFalse(laneOf().isUrgent)
  })

  it("stops and slows the others once; the gossip of a stop repeats ever shorter times", () => {
    const [here, there] = [laneOf(), laneOf()]
    for (let i = 0; i < 5; i++) here.judge(throttled, push(i), 429, now)
    assert.isTrue(here.isUrgent)
    const news = here.takeGossip("w", now)!
    assert.deepEqual(news, { ...nothing, answers: 5, window: 4, closedMillis: 30_000 })
    assert.deepEqual(
      there.merge(news, now).map(({ level }) => level),
      ["warn"]
    )
    assert.deepEqual(there.deferral(someone, now), {
      kind: "deferred",
      reason: "lane-throttled",
      until: now + 30_000
    })
    assert.strictEqual(there.stateAt(now).window, 4)
    there.merge(news, now)
    assert.strictEqual(there.stateAt(now).window, 4, "who is told twice is not slower")
    assert.isUndefined(there.takeGossip("v", now), "what one was told is not told on")
    assert.deepEqual(here.takeGossip("w", now + 10_000), { ...nothing, closedMillis: 20_000 })
  })

  it("opens and closes the others' breakers", () => {
    const [here, there] = [laneOf(), laneOf()]
    here.judge(credentials, push(1), 403, now)
    const news = here.takeGossip("w", now)!
    assert.deepEqual(news, { ...nothing, answers: 1, openMillis: minute })
    there.merge(news, now)
    assert.strictEqual(there.stateAt(now).breaker, "open")
    assert.isUndefined(there.takeGossip("v", now))
    assert.deepEqual(here.takeGossip("w", now + 20_000), { ...nothing, openMillis: 40_000 })
    there.judge({ kind: "accepted", reason: "accepted" }, push(2), 201, now + minute)
    const better = there.takeGossip("v", now + minute)!
    assert.deepEqual(better, { ...nothing, worker: "v", answers: 1, openMillis: 0, reached: 2 })
    here.merge(better, now + minute)
    assert.strictEqual(here.stateAt(now + minute).breaker, "closed")
    assert.isUndefined(here.takeGossip("w", now + minute))
  })

  it("makes the others hold, whatever was lost before", () => {
    const [here, there] = [laneOf(), laneOf()]
    for (let i = 0; i < 60; i++) here.judge({ kind: "gone", reason: "gone" }, push(i), 410, now)
    assert.isTrue(here.isUrgent)
    here.takeGossip("w", now)
    const again = here.takeGossip("w", now + 2_000)!
    assert.deepEqual(again, { ...nothing, holds: true })
    assert.deepEqual(
      there.merge(again, now).map(({ level }) => level),
      ["warn"]
    )
    assert.strictEqual(
      there.judge({ kind: "gone", reason: "gone" }, push(1), 410, now).judged.kind,
      "deferred"
    )
  })
})
