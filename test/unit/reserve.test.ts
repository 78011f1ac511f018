// Turns for pushes of a broadcast with a rate, reserved by processes that share a bucket.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { makeDiskBuckets } from "#nats/kv/disk-buckets.ts"
import { keys } from "#streams/buckets.ts"
import { type LimitedRef, reserve } from "../../src/delivery/rate/limit.ts"

const job = (rate: number): LimitedRef => ({
  broadcast: 1,
  channel: "news",
  acceptedAt: 0,
  expiresAt: 1e9,
  urgency: "normal",
  rate
})

describe("turns of a broadcast with a rate", () => {
  it.effect("follow each other, whoever reserves them, and none is reserved too early", () =>
    Effect.gen(function* () {
      const { buckets } = yield* makeDiskBuckets
      yield* TestClock.adjust("1 hour")
      const one = yield* reserve(buckets, job(100), 20, 150)
      const early = yield* reserve(buckets, job(100), 20, 150)
      assert.deepEqual(early, { count: 0, first: one.first + 200 })
      yield* TestClock.adjust(60)
      assert.deepEqual(yield* reserve(buckets, job(100), 5, 150), { ...early, count: 5 })
      const stored = yield* buckets.get("cache", keys.turns(1))
      assert.deepEqual(stored?.value, { v: 1, until: 3_600_250 })
      const third = yield* reserve(buckets, job(100), 5, 250)
      assert.equal(third.first, early.first + 50)
    })
  )

  it.effect("of the last 300 ms are caught up with; after a rest the first one is now", () =>
    Effect.gen(function* () {
      const { buckets } = yield* makeDiskBuckets
      yield* TestClock.adjust("1 hour")
      const one = yield* reserve(buckets, job(100), 1, 150)
      yield* TestClock.adjust(310)
      const two = yield* reserve(buckets, job(100), 1, 150)
      assert.equal(two.first, one.first + 10)
      yield* TestClock.adjust(321)
      const three = yield* reserve(buckets, job(100), 1, 150)
      assert.equal(three.first, one.first + 631)
    })
  )

  it.effect("go on when the clock of NATS was set back", () =>
    Effect.gen(function* () {
      const { buckets } = yield* makeDiskBuckets
      yield* buckets.put("cache", keys.turns(1), { v: 1, until: 3_600_000 }, 0)
      yield* TestClock.adjust("1 minute")
      assert.equal((yield* reserve(buckets, job(100), 1, 150)).count, 1)
    })
  )
})
