// A rate limit per key: its burst, the time of the next one, and its memory.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import { makeRate } from "#basics/limits.ts"

const hour = 3_600_000

describe("a rate", () => {
  it("allows as many at once as in a window, and returns when the next is allowed", () => {
    const rate = makeRate(4, hour, 10)
    assert.deepEqual(
      Array.from({ length: 4 }, () => rate.take("a", 0)),
      [0, 0, 0, 0]
    )
    assert.equal(rate.take("a", 0), hour / 4)
    assert.equal(rate.take("a", hour / 4 - 1), 1)
    assert.equal(rate.take("a", hour / 4), 0)
    assert.equal(rate.take("b", 0), 0)
  })

  it("allows again what was given back, and no more", () => {
    const rate = makeRate(4, hour, 10)
    rate.giveBack("a", 3)
    assert.equal(rate.take("a", 0, 4), 0)
    rate.giveBack("a", 2)
    assert.equal(rate.take("a", 0, 2), 0)
    assert.equal(rate.take("a", 0), hour / 4)
    // What was given back long after does not add to a burst.
    rate.giveBack("a", 4)
    assert.equal(rate.take("a", 2 * hour, 4), 0)
    assert.isAbove(rate.take("a", 2 * hour), 0)
  })

  it("allows at most two windows' worth in any window, and the next exactly when it said", () => {
    const steps = fc.array(fc.nat(hour / 3), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), steps, (max, pauses) => {
        const rate = makeRate(max, hour, 10)
        const taken: Array<number> = []
        let now = 0
        for (const pause of pauses) {
          now += pause
          const waitMillis = rate.take("a", now)
          if (waitMillis > 0) {
            assert.isAbove(rate.take("a", now + waitMillis / 2), 0)
            now += waitMillis
            assert.equal(rate.take("a", now), 0)
          }
          taken.push(now)
        }
        for (const at of taken)
          assert.isAtMost(taken.filter((each) => each >= at && each < at + hour).length, 2 * max)
      })
    )
  })

  it("counts a large one as several, and one that is larger than all as all", () => {
    const rate = makeRate(4, hour, 10)
    assert.equal(rate.take("a", 0, 2.5), 0)
    assert.equal(rate.wait("a", 0, 1.5), 0)
    assert.equal(rate.take("a", 0, 2), hour / 8)
    assert.equal(rate.take("a", 0, 1.5), 0)
    assert.equal(rate.take("a", 0), hour / 4)
    assert.equal(rate.take("b", 0, 100), 0)
    assert.equal(rate.take("b", 0), hour / 4)
  })

  it("of 0 is no limit, and stores nothing", () => {
    const rate = makeRate(0, hour, 10)
    for (let i = 0; i < 100; i += 1) assert.equal(rate.take("a", 0, i), 0)
    assert.deepEqual([rate.wait("a", 0), rate.size()], [0, 0])
  })

  it("stores no more keys than its maximum, and first drops those that are due", () => {
    const rate = makeRate(1, hour, 3)
    for (const key of ["a", "b", "c"]) assert.equal(rate.take(key, 0), 0)
    assert.equal(rate.take("d", hour / 2), 0)
    assert.equal(rate.size(), 3)
    // The key that was counted longest ago is gone.
    assert.isAbove(rate.take("b", hour / 2), 0)
    assert.equal(rate.take("e", 2 * hour), 0)
    assert.equal(rate.size(), 1)
  })

  it("takes a new key about as fast when all keys are in use", () => {
    const microsOfNewKeys = (inUse: number): number => {
      const rate = makeRate(1, hour, 20_000)
      for (let i = 0; i < inUse; i += 1) rate.take(`used ${i}`, 0)
      const before = process.cpuUsage()
      for (let i = 0; i < 2_000; i += 1) rate.take(`new ${i}`, 1)
      return process.cpuUsage(before).user
    }
    microsOfNewKeys(10_000)
    // A look at all keys for each new one costs 250 times as much.
    assert.isBelow(microsOfNewKeys(20_000), 50 * Math.max(1_000, microsOfNewKeys(10_000)))
  })
})
