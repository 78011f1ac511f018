// When a push is tried again: bounds that hold for every attempt and every throw of the dice.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { attemptsMax, retryDelayMillis, throttledBaseMillis } from "#domain/job.ts"

const baseMillis = 10_000
const lowest = 0
const highest = 1 - Number.EPSILON
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const attempt = fc.integer({ min: 1, max: attemptsMax })

describe("the delay before the next attempt", () => {
  it.for([
    [1, 10_000],
    [2, 20_000],
    [3, 40_000],
    [4, 80_000],
    [5, 160_000],
    [6, 320_000],
    [7, 640_000],
    [8, 900_000],
    [60, 900_000]
  ] as const)("after attempt %i lies in the upper half of %i ms", ([attempt, full]) => {
    assert.strictEqual(retryDelayMillis(attempt, baseMillis, lowest), full / 2)
    assert.strictEqual(retryDelayMillis(attempt, baseMillis, highest), full)
    fc.assert(
      fc.property(random, (random) => {
        const delay = retryDelayMillis(attempt, baseMillis, random)
        assert.isTrue(delay >= full / 2 && delay <= full && Number.isInteger(delay), String(delay))
      })
    )
  })

  it("adds up to 11 to 21 minutes over all attempts", () => {
    const sum = (random: number) =>
      Array.from({ length: attemptsMax - 1 }, (_, i) =>
        retryDelayMillis(i + 1, baseMillis, random)
      ).reduce((a, b) => a + b, 0)
    assert.strictEqual(sum(highest), 1_270_000)
    assert.strictEqual(sum(lowest), 635_000)
  })

  it("is Retry-After plus up to a tenth, between a second and a day, when that is longer", () => {
    fc.assert(
      fc.property(
        attempt,
        random,
        fc.integer({ min: -10_000, max: 200_000_000 }),
        (attempt, random, asked) => {
          const delay = retryDelayMillis(attempt, baseMillis, random, asked)
          const clamped = Math.min(Math.max(asked, 1_000), 86_400_000)
          const backoff = retryDelayMillis(attempt, baseMillis, random)
          assert.isTrue(
            delay >= Math.max(backoff, asked > 0 ? clamped : 0) && Number.isInteger(delay),
            `${asked}: ${delay}`
          )
          assert.isTrue(delay <= Math.max(backoff, Math.round(clamped * 1.1)), `${asked}: ${delay}`)
        }
      )
    )
    assert.strictEqual(retryDelayMillis(1, baseMillis, lowest, 120_000), 120_000)
    assert.strictEqual(retryDelayMillis(1, baseMillis, lowest, 1e12), 86_400_000)
  })

  it("is not shortened by Retry-After", () => {
    assert.strictEqual(retryDelayMillis(1, baseMillis, lowest, 0), 5_000)
    assert.strictEqual(retryDelayMillis(4, baseMillis, highest, 1_000), 80_000)
  })

  it("starts at a minute for a push that was throttled", () => {
    assert.strictEqual(throttledBaseMillis(baseMillis), 60_000)
  })
})
