// The outcome of a push that was tried or deferred: what counts as an attempt, and when it is
// retried.
import { assert, describe, it } from "@effect/vitest"
import type { Attempt, Target } from "#delivery/attempt.ts"
import { resultOf } from "#delivery/jobs/result.ts"
import { attemptsMax, type BroadcastRef } from "#domain/job.ts"
import type { UserToken } from "#streams/tokens.ts"

const at = 1_800_000_000_000
const minute = 60_000
const baseMillis = 10_000
const highest = 1 - Number.EPSILON
const target: Target = {
  user: "user" as UserToken,
  id: "id",
  stored: {
    seq: 1,
    lastModified: 1,
    data: { endpoint: "https://push.example.com/1", keys: { auth: "", p256dh: "" } }
  }
}
const ref: BroadcastRef = {
  broadcast: 1,
  channel: "news",
  acceptedAt: at,
  expiresAt: at + 60 * minute,
  urgency: "normal"
}
const held = (until: number, status?: number): Attempt => ({
  kind: "deferred",
  decidedBy: status === undefined ? "process" : "response",
  reason: "breaker-open",
  waitMillis: until - at,
  millis: 0,
  ...(status === undefined ? {} : { status })
})
const fateOf = (attempt: Attempt, number: number, random = 0) =>
  resultOf({ target, ref, attempt, number, at, baseMillis, random })

describe("a push held back", () => {
  it("counts no attempt, however often, sent or not", () => {
    assert.deepInclude(fateOf(held(at + minute), 1), {
      fate: "retrying",
      reason: "breaker-open",
      attempt: 0,
      nextAt: at + minute
    })
    assert.deepInclude(fateOf(held(at + minute, 403), attemptsMax), {
      fate: "retrying",
      attempt: attemptsMax - 1,
      status: 403
    })
    assert.deepInclude(fateOf(held(at + minute), attemptsMax + 1), {
      fate: "retrying",
      attempt: attemptsMax
    })
  })

  it("comes back within a tenth after its time, never before", () => {
    assert.strictEqual(fateOf(held(at + minute), 1, highest).nextAt, at + 66_000)
    assert.strictEqual(fateOf(held(at - 5), 1).nextAt, at + 1)
  })

  it("expires when its time comes after its TTL", () => {
    assert.deepInclude(fateOf(held(ref.expiresAt), 1), {
      fate: "expired",
      reason: "expired:breaker-open"
    })
  })
})

describe("a push that was throttled", () => {
  const throttled = (retryAfterMillis?: number): Attempt => ({
    kind: "failed",
    reason: "throttled",
    decidedBy: "response",
    status: 429,
    millis: 5,
    ...(retryAfterMillis === undefined ? {} : { retryAfterMillis })
  })

  it("waits a minute, doubling, where it is not told for how long", () => {
    assert.deepInclude(fateOf(throttled(), 1, highest), {
      fate: "retrying",
      attempt: 1,
      nextAt: at + minute
    })
    assert.strictEqual(fateOf(throttled(), 2, highest).nextAt, at + 2 * minute)
  })

  it("waits as told, but not less than after any failure", () => {
    assert.strictEqual(fateOf(throttled(30_000), 1).nextAt, at + 30_000)
    assert.strictEqual(fateOf(throttled(1_000), 1, highest).nextAt, at + baseMillis)
  })

  it("is dead after the last attempt", () => {
    assert.deepInclude(fateOf(throttled(), attemptsMax), {
      fate: "dead",
      reason: "attempts-used-up:throttled",
      attempt: attemptsMax
    })
  })
})

describe("a push that WNS dropped", () => {
  const dropped: Attempt = {
    ...{ kind: "failed", reason: "dropped", decidedBy: "response", status: 200, millis: 5 }
  }

  it("is tried once more, and is dead when a later attempt is dropped", () => {
    assert.deepInclude(fateOf(dropped, 1), { fate: "retrying", reason: "dropped", attempt: 1 })
    for (const number of [2, 5])
      assert.deepInclude(fateOf(dropped, number), {
        fate: "dead",
        reason: "attempts-used-up:dropped",
        attempt: number
      })
  })
})
