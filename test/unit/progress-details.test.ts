// The outcomes of the pushes of a broadcast, by reason and push service, and how long answers took.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { Fate, PushResult } from "#domain/outcome.ts"
import { addMillis, type Details, evolveDetails, noDetails, quantile } from "#domain/progress.ts"
import type { StoredReason } from "#domain/reason.ts"
import { result } from "#test/outcome-messages.ts"

const made = (fate: Fate, reason: string, more: Partial<PushResult> = {}): PushResult => ({
  ...result("s", fate),
  reason: reason as StoredReason,
  ...more
})

const formerly = (reason: string) => ({ former: { reason: reason as StoredReason, attempt: 1 } })

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((a, b) => a + b, 0)

describe("durations", () => {
  const counted = (list: ReadonlyArray<number>) => {
    const durations: Array<number> = []
    for (const millis of list) addMillis(durations, millis)
    return durations
  }

  it("are counted as one that is at most 10 % away, at 80 places up to two minutes", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 120_000 }), (millis) => {
        const durations = counted([millis])
        assert.isAtMost(Math.abs(quantile([durations], 1)! - millis), millis / 10)
        assert.isAtMost(durations[0]!, 80)
      }),
      { numRuns: 20_000 }
    )
  })

  it("have the quantiles that the list of them has, within 10 %", () => {
    const lists = fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 500 })
    fc.assert(
      fc.property(lists, fc.constantFrom(0.5, 0.99, 1), (list, share) => {
        const exact = list.toSorted((a, b) => a - b)[Math.ceil(share * list.length) - 1]!
        assert.isAtMost(
          Math.abs(quantile([counted(list.slice(0, 9)), counted(list.slice(9))], share)! - exact),
          exact / 10
        )
      })
    )
    assert.isUndefined(quantile([], 0.5))
  })
})

describe("the details of a broadcast", () => {
  it("count pushes by reason and push service, and the answers alone by duration", () => {
    const details = evolveDetails(
      noDetails,
      [
        made("delivered", "accepted", { service: "google", status: 201, millis: 42, at: 1_700 }),
        made("delivered", "accepted", { service: "google", status: 201, millis: 43, at: 1_500 }),
        made("retrying", "timeout", { service: "mozilla", millis: 10_000 }),
        made("gone", "gone", { status: 410, millis: 900 }),
        made("expired", "expired", { attempt: 0, millis: 0 })
      ],
      false
    )
    assert.deepStrictEqual(details, {
      reasons: { accepted: 2, timeout: 1, gone: 1, expired: 1 },
      services: {
        google: { fates: { delivered: 2 }, durations: [24, 2] },
        mozilla: { fates: { retrying: 1 }, durations: [] },
        other: { fates: { gone: 1, expired: 1 }, durations: [43, 1] }
      },
      firstDeliveredAt: 1_500,
      lastDeliveredAt: 1_700
    })
  })

  it("move a push that was retrying to its next reason, and to its next outcome", () => {
    const first = evolveDetails(
      noDetails,
      [made("retrying", "timeout"), made("retrying", "throttled")],
      false
    )
    const again = evolveDetails(
      first,
      [made("retrying", "server-error", formerly("timeout"))],
      true
    )
    const last = evolveDetails(again, [made("dead", "refused", formerly("throttled"))], true)
    assert.deepStrictEqual(again.reasons, { timeout: 0, throttled: 1, "server-error": 1 })
    assert.deepStrictEqual(last.reasons, {
      ...{ timeout: 0, throttled: 0, "server-error": 1, refused: 1 }
    })
    assert.deepStrictEqual(last.services["other"]?.fates, { retrying: 1, dead: 1 })
  })

  it("keep what they were made from", () => {
    const before = evolveDetails(noDetails, [made("delivered", "accepted", { status: 201 })], false)
    const copy = structuredClone(before)
    evolveDetails(before, [made("delivered", "accepted", { status: 201, at: 9_000 })], false)
    assert.deepStrictEqual(before, copy)
    assert.deepStrictEqual(noDetails, { reasons: {}, services: {} })
  })

  it("name at most 32 reasons and eight push services: the rest is other, and adds up", () => {
    const words = (count: number) => fc.integer({ min: 0, max: count }).map((n) => `w${n}`)
    const pushes = fc.array(fc.tuple(words(60), words(12), words(60)), { maxLength: 400 })
    fc.assert(
      fc.property(pushes, (list) => {
        let details: Details = noDetails
        for (const [reason, service] of list)
          details = evolveDetails(details, [made("retrying", reason, { service })], false)
        for (const [reason, service, next] of list)
          details = evolveDetails(
            details,
            [made("delivered", next, { service, ...formerly(reason) })],
            true
          )
        const { reasons, services } = details
        assert.isAtMost(Object.keys(reasons).filter((each) => each !== "other").length, 32)
        assert.isAtMost(Object.keys(services).filter((each) => each !== "other").length, 8)
        assert.isTrue(Object.values(reasons).every((count) => count >= 0))
        assert.strictEqual(sum(reasons), list.length)
        const delivered = Object.values(services).map(({ fates }) => fates["delivered"] ?? 0)
        assert.strictEqual(
          delivered.reduce((a, b) => a + b, 0),
          list.length
        )
      })
    )
  })
})
