// Final counts that may go from LOG: their sum says of the pushes of a channel what they said,
// whichever of them are gone.
import fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type ChannelSummed,
  emptyPushes,
  evolveSum,
  type FinalCounts,
  sumSince,
  withFinal,
  withSum
} from "#domain/outcome.ts"

interface Ended {
  /** Sequence in LOG of the final counts. */
  readonly seq: number
  readonly counts: FinalCounts
}

const foldPushes = (finals: ReadonlyArray<Ended>, since: number, sum?: ChannelSummed) => {
  const counted = finals.reduce((all, each) => withFinal(all, sum, each), emptyPushes(since))
  return sum === undefined ? counted : withSum(counted, sum)
}

describe("the pushes of any channel", () => {
  const final = fc.record({
    shards: fc.constantFrom(0, 1, 16),
    delivered: fc.nat(3),
    work: fc.nat(90),
    lastModified: fc.nat(90),
    /** The start of the broadcast: so many messages before its end. */
    age: fc.integer({ min: 1, max: 9 })
  })
  const cut = fc.record({ upTo: fc.nat(60), gone: fc.array(fc.nat(60), { maxLength: 20 }) })

  it("are the same by a sum and the final counts that are left, after each deletion", () => {
    const seen = { deleted: 0, sums: 0, begunLater: 0 }
    const endedOf = fc.array(final, { maxLength: 30 }).map(
      (all): ReadonlyArray<Ended> =>
        all.map(({ age, delivered, lastModified, shards, work }, i) => {
          const seq = 10 + 2 * i
          return {
            seq,
            counts: { broadcast: seq - age, delivered, lastModified, shards, seq: work }
          }
        })
    )
    const check = (
      all: ReadonlyArray<Ended>,
      since: number,
      cuts: ReadonlyArray<{ readonly upTo: number; readonly gone: ReadonlyArray<number> }>,
      begunLater: number
    ) => {
      let left = all
      let sum: ChannelSummed | undefined
      for (const { gone, upTo } of cuts) {
        const before = sumSince(sum, since)
        // As the projector does: only what comes after the former sum.
        const next = left.filter(({ seq }) => seq > before.upTo && seq <= upTo)
        sum = next.reduce((acc, { counts, seq }) => evolveSum(acc, counts, seq), before)
        seen.sums += next.length
        assert.deepEqual(foldPushes(left, since, sum), foldPushes(all, since))
        for (const i of gone) {
          const one = all[i]
          if (one === undefined || one.seq > sum.upTo || !left.includes(one)) continue
          left = left.filter((each) => each !== one)
          seen.deleted++
          assert.deepEqual(foldPushes(left, since, sum), foldPushes(all, since))
        }
      }
      // The channel begins anew: final counts that come later are as if nothing had gone.
      const again = Math.max(begunLater, (sum?.upTo ?? 0) + 1)
      assert.deepEqual(foldPushes(left, again, sum), foldPushes(all, again))
      assert.deepEqual(sumSince(sum, again), sumSince(undefined, again))
      if (foldPushes(all, again).seq > 0) seen.begunLater++
    }
    const histories = fc.property(
      endedOf,
      fc.integer({ min: 1, max: 40 }),
      fc.array(cut, { maxLength: 4 }),
      fc.integer({ min: 1, max: 70 }),
      check
    )
    fc.assert(histories, { numRuns: 2_000, seed: 5 })
    for (const count of Object.values(seen)) assert.isAbove(count, 100)
  })

  it("do not count a message that is malformed, nor stop there", () => {
    const sum = sumSince(undefined, 3)
    assert.deepEqual(evolveSum(sum, undefined, 9), { ...sum, upTo: 9 })
  })
})
