// The state of a push service in one process: how guard, breakers and pacing work together.
import { assert, describe, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import type { ResponseResult } from "#delivery/attempt.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const now = 1_800_000_000_000
const minute = 60_000
const pushTo = pushesAt(now)
const someone = pushTo("someone")

describe("the state of a push service", () => {
  const accepted: ResponseResult = { kind: "delivered", reason: "accepted" }
  const gone: ResponseResult = { kind: "gone", reason: "gone" }
  const credentials: ResponseResult = { kind: "failed", reason: "credentials" }
  const mismatch: ResponseResult = { kind: "failed", reason: "key-mismatch" }
  const throttled: ResponseResult = {
    kind: "failed",
    reason: "throttled",
    retryAfterMillis: 30_000
  }
  const pushServiceOf = () =>
    new PushService("https://push.example.com:8443", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const push = (i: number, acceptedAt = now, sentAt = now, storedAt = 0) =>
    pushTo(`user${i}`, { acceptedAt, sentAt, storedAt })

  it("defers the 50th 410 without a success for 1 minute, later for up to 15 minutes", () => {
    const pushService = pushServiceOf()
    for (let i = 0; i < 49; i++)
      assert.deepEqual(pushService.judge(gone, push(i), 410, now), { judged: gone, notices: [] })
    const held = (ageMillis: number) => {
      const { judged } = pushService.judge(gone, push(50, now - ageMillis), 410, now)
      return judged.kind === "deferred" && judged.reason === "mass-gone"
        ? judged.waitMillis
        : undefined
    }
    assert.strictEqual(held(0), minute)
    assert.strictEqual(held(20 * minute), 5 * minute)
    assert.strictEqual(held(600 * minute), 15 * minute)
  })

  it("takes a mismatch for the subscription's with a proof, for ours without", () => {
    const pushService = pushServiceOf()
    pushService.judge(accepted, push(0), 201, now)
    assert.deepEqual(pushService.judge(mismatch, push(1), 403, now).judged, {
      kind: "gone",
      reason: "key-mismatch"
    })
    const ofToday = push(2, now, now, now - 60 * minute)
    assert.deepEqual(
      pushService.judge(mismatch, ofToday, 403, now).judged,
      mismatch,
      "made with a key that this process may not have yet"
    )
    const other = pushServiceOf()
    assert.deepEqual(other.judge(mismatch, push(1), 403, now).judged, {
      kind: "deferred",
      reason: "key-mismatch",
      waitMillis: 1_000
    })
    const again = other.deferral(push(1), now + 1_000)
    assert.deepInclude(again, { reason: "breaker-open", waitMillis: minute - 1_000 })
  })

  it("goes on for the others while one user has many subscriptions of another key", () => {
    const pushService = pushServiceOf()
    pushService.judge(accepted, push(0), 201, now)
    for (let i = 1; i <= 20; i++)
      assert.deepEqual(
        pushService.judge(mismatch, push(i, now, now, now - minute), 403, now).judged,
        mismatch
      )
    assert.strictEqual(pushService.stateAt(now).credentials, "closed")
    assert.isUndefined(pushService.deferral(someone, now))
  })

  it("does not remove by mismatch what would be a mass removal", () => {
    const pushService = pushServiceOf()
    pushService.judge(accepted, push(0), 201, now)
    const fates = Array.from(
      { length: 100 },
      (_, i) => pushService.judge(mismatch, push(i), 403, now).judged.kind
    )
    assert.strictEqual(fates.filter((each) => each === "gone").length, 48)
  })

  it("names host and reason once when it closes, and never a subscription", () => {
    const pushService = pushServiceOf()
    const notices = Array.from(
      { length: 10 },
      (_, i) => pushService.judge(credentials, push(i), 403, now).notices
    ).flat()
    assert.deepEqual(notices, [
      {
        level: "error",
        text:
          "push.example.com refuses our credentials (credentials, status 403): " +
          "pushes to it wait"
      }
    ])
    const held = pushService.deferral(someone, now)
    assert.deepInclude(held as object, { kind: "deferred", reason: "breaker-open" })
    assert.isAtMost(held!.waitMillis, minute)
    assert.deepEqual(
      pushService.judge(accepted, push(1), 201, now).notices.map(({ level }) => level),
      ["info"]
    )
    assert.isUndefined(pushService.deferral(someone, now))
  })

  it("closes for throttled pushes, which count as attempts; those it holds do not", () => {
    const pushService = pushServiceOf()
    for (let i = 0; i < 5; i++)
      assert.deepEqual(pushService.judge(throttled, push(i), 429, now).judged, throttled)
    assert.deepEqual(pushService.deferral(someone, now + 1), {
      kind: "deferred",
      reason: "push-service-throttled",
      waitMillis: 30_000 - 1
    })
    assert.isUndefined(pushService.deferral(someone, now + 30_000))
  })

  it("turns pushes away only when it is slowed and its line is full", async () => {
    const pushService = pushServiceOf()
    const open: Array<() => void> = []
    const enter = () =>
      void Effect.runFork(
        pushService.withPlace(
          1,
          Effect.promise(() => new Promise<void>((resolve) => open.push(resolve)))
        )
      )
    for (let i = 0; i < 20; i++) enter()
    assert.strictEqual(open.length, 8)
    assert.isUndefined(pushService.queueFull(now, now))
    for (let i = 0; i < 5; i++) pushService.judge(throttled, push(i), 429, now)
    assert.deepEqual(pushService.queueFull(now - 40_000, now), {
      kind: "deferred",
      reason: "push-service-slow",
      waitMillis: 10_000
    })
    for (let i = 0; i < 8; i++) open[i]!()
    // Four more got in, eight stand in line: that is full; one less is not.
    await vi.waitFor(() => assert.strictEqual(open.length, 12))
    assert.isDefined(pushService.queueFull(now, now))
    open[8]!()
    await vi.waitFor(() => assert.strictEqual(open.length, 13))
    assert.isUndefined(pushService.queueFull(now, now))
  })
})
