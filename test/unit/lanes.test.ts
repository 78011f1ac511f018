// What one process learns about a push service: when 429s close its lane, and how guard, breaker and pacing judge together.
import { assert, describe, it } from "@effect/vitest"
import { makeLane } from "#delivery/lanes/lane.ts"
import { makePacing } from "#delivery/lanes/pacing.ts"
import type { Classified } from "#delivery/push/classify.ts"

const now = 1_800_000_000_000
const minute = 60_000

describe("pacing", () => {
  const close = (retryAfterMillis?: number) => {
    const pacing = makePacing(minute)
    for (const each of ["a", "b", "c", "d"]) assert.isFalse(pacing.throttled(each, now, retryAfterMillis))
    assert.isUndefined(pacing.closedUntil(now))
    assert.isTrue(pacing.throttled("e", now, retryAfterMillis))
    return pacing
  }

  it("closes at the fifth throttled subscription for what Retry-After says, or a minute", () => {
    const pacing = close()
    assert.strictEqual(pacing.closedUntil(now + minute - 1), now + minute)
    assert.isUndefined(pacing.closedUntil(now + minute))
    assert.strictEqual(close(120_000).closedUntil(now), now + 120_000)
    assert.strictEqual(close(0).closedUntil(now), now + 1_000)
    assert.strictEqual(close(24 * 60 * minute).closedUntil(now), now + 15 * minute)
  })

  it("stays open for one subscription throttled again and again, and for five in more than a minute", () => {
    const pacing = makePacing(minute)
    for (let i = 0; i < 20; i++) assert.isFalse(pacing.throttled("a", now, undefined))
    for (let i = 0; i < 20; i++) assert.isFalse(pacing.throttled(`s${i}`, now + minute + i * 16_000, undefined))
  })

  it("stays closed for the longest wait that pushes on their way are asked for, and closes again only for five more", () => {
    const pacing = close()
    assert.isFalse(pacing.throttled("f", now + 1, 90_000))
    assert.strictEqual(pacing.closedUntil(now + 2), now + 1 + 90_000)
    assert.isFalse(pacing.throttled("g", now + 2 * minute, undefined))
    assert.isUndefined(pacing.closedUntil(now + 2 * minute))
  })
})

describe("a lane", () => {
  const accepted: Classified = { class: "accepted", reason: "accepted" }
  const gone: Classified = { class: "gone", reason: "gone" }
  const credentials: Classified = { class: "credentials", reason: "credentials" }
  const mismatch: Classified = { class: "mismatch", reason: "key-mismatch" }
  const throttled: Classified = { class: "retry", reason: "throttled", retryAfterMillis: 30_000 }
  const laneOf = () =>
    makeLane("https://push.example.com:8443", { connectionsPerOrigin: 1, breakerOpenMillis: minute, retryBaseMillis: 10_000 })
  const push = (i: number, acceptedAt = now) => ({ subscription: `user${i}.id`, acceptedAt })

  it("holds the 50th of nothing but gone answers back for a minute, later for a quarter of the broadcast's age, at most 15 minutes", () => {
    const lane = laneOf()
    for (let i = 0; i < 49; i++) assert.deepEqual(lane.judge(gone, push(i), 410, now), { judged: gone, notices: [] })
    const held = (ageMillis: number) => {
      const { judged } = lane.judge(gone, push(50, now - ageMillis), 410, now)
      return judged.class === "held" && judged.reason === "mass-gone" ? judged.until - now : undefined
    }
    assert.strictEqual(held(0), minute)
    assert.strictEqual(held(20 * minute), 5 * minute)
    assert.strictEqual(held(600 * minute), 15 * minute)
  })

  it("takes a mismatch for the subscription's with a proof, for ours without", () => {
    const lane = laneOf()
    assert.isTrue(lane.doubtsToken(mismatch, now))
    lane.judge(accepted, push(0), 201, now)
    assert.isFalse(lane.doubtsToken(mismatch, now))
    assert.deepEqual(lane.judge(mismatch, push(1), 403, now).judged, { class: "gone", reason: "key-mismatch" })
    const other = laneOf()
    assert.deepEqual(other.judge(mismatch, push(1), 403, now).judged, { class: "held", reason: "key-mismatch", until: now + minute })
  })

  it("does not remove by mismatch what would be a mass removal", () => {
    const lane = laneOf()
    lane.judge(accepted, push(0), 201, now)
    const fates = Array.from({ length: 100 }, (_, i) => lane.judge(mismatch, push(i), 403, now).judged.class)
    assert.strictEqual(fates.filter((each) => each === "gone").length, 48)
  })

  it("names host and reason once when it closes, and never a subscription", () => {
    const lane = laneOf()
    const notices = Array.from({ length: 10 }, (_, i) => lane.judge(credentials, push(i), 403, now).notices).flat()
    assert.deepEqual(notices, [
      { level: "error", text: "push.example.com refuses our credentials (credentials, status 403): pushes to it wait" }
    ])
    assert.deepEqual(lane.heldAt(now), { class: "held", reason: "breaker-open", until: now + minute })
    assert.deepEqual(
      lane.judge(accepted, push(1), 201, now).notices.map(({ level }) => level),
      ["info"]
    )
    assert.isUndefined(lane.heldAt(now))
  })

  it("closes for throttled pushes, which count as attempts; those it holds do not", () => {
    const lane = laneOf()
    for (let i = 0; i < 5; i++) assert.deepEqual(lane.judge(throttled, push(i), 429, now).judged, throttled)
    assert.deepEqual(lane.heldAt(now + 1), { class: "held", reason: "lane-throttled", until: now + 30_000 })
    assert.isUndefined(lane.heldAt(now + 30_000))
  })
})
