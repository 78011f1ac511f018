// The share of failed pushes that pauses a broadcast: which count, and from when on.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { pauseWhenOf, pauseWhenText } from "#domain/broadcast.ts"
import type { Fate, Outcome, PushResult } from "#domain/outcome.ts"
import { evolveFailures, type Failures, noFailures } from "#domain/progress.ts"
import type { StoredReason } from "#domain/reason.ts"
import { outcome, result } from "#test/outcome-messages.ts"

const made = (fate: Fate, reason: string, attempt = 1): PushResult => ({
  ...result("s", fate),
  reason: reason as StoredReason,
  attempt
})

const times = (count: number, push: PushResult) => Array.from({ length: count }, () => push)

const stored = (results: ReadonlyArray<PushResult>, run?: number): Outcome => ({
  ...outcome(0, [], false),
  results,
  ...(run === undefined ? {} : { run })
})

const countsOf = ({ attempted, failed }: Failures) => [attempted, failed]

describe("the failures of a broadcast", () => {
  it("are dead, expired, and retrying but for throttling; gone and unsent are none", () => {
    const pushes = [
      ...[made("delivered", "accepted"), made("gone", "gone"), made("retrying", "throttled")],
      ...[made("dead", "refused"), made("expired", "expired:timeout"), made("retrying", "timeout")],
      ...[made("expired", "expired", 0), made("retrying", "breaker-open", 0)],
      ...[made("gone", "left", 0), made("cancelled", "cancelled", 0)]
    ]
    assert.deepStrictEqual(countsOf(evolveFailures(noFailures(0.5), stored(pushes), 4)), [6, 3])
  })

  it("reach a share of at least 100 attempted pushes, once in a run", () => {
    const [good, bad] = [made("delivered", "accepted"), made("dead", "refused")]
    const few = evolveFailures(noFailures(0.2), stored(times(99, bad)), 4)
    assert.notProperty(few, "reached")
    assert.strictEqual(evolveFailures(few, stored([good]), 5).reached, 5)
    const many = evolveFailures(noFailures(0.2), stored([...times(81, good), ...times(19, bad)]), 4)
    assert.notProperty(many, "reached")
    const reached = evolveFailures(many, stored(times(2, bad)), 7)
    assert.strictEqual(reached.reached, 7)
    const later = evolveFailures(reached, stored(times(50, good)), 8)
    assert.strictEqual(later.reached, 7)
    assert.deepEqual(later.because, reached.because)
    assert.deepEqual(reached.because, { attempted: reached.attempted, failed: reached.failed })
  })

  it("follow a push that is tried again, in whatever it fails", () => {
    const first = evolveFailures(
      noFailures(0.2),
      stored([made("retrying", "timeout"), made("retrying", "push-service-slow", 0)]),
      4
    )
    assert.deepStrictEqual(countsOf(first), [1, 1])
    const formerly = (reason: string, attempt: number) => ({
      former: { reason: reason as StoredReason, attempt }
    })
    const later = stored([
      { ...made("delivered", "accepted", 2), ...formerly("timeout", 1) },
      { ...made("retrying", "reset", 1), ...formerly("push-service-slow", 0) }
    ])
    const second = evolveFailures(first, later, 5)
    assert.deepStrictEqual(countsOf(second), [2, 1])
    const last = stored([{ ...made("dead", "attempts-used-up:reset", 8), ...formerly("reset", 7) }])
    assert.deepStrictEqual(countsOf(evolveFailures(second, last, 6)), [2, 1])
  })

  it("begin anew with a resume, without the pushes of the run before it", () => {
    const bad = made("dead", "refused")
    const first = evolveFailures(noFailures(0.2), stored(times(150, bad)), 4)
    assert.strictEqual(first.reached, 4)
    const second = evolveFailures(first, stored(times(2, bad), 1), 5)
    assert.deepStrictEqual(second, { share: 0.2, run: 1, attempted: 2, failed: 2 })
    assert.strictEqual(evolveFailures(second, stored(times(150, bad)), 6), second)
    assert.strictEqual(evolveFailures(second, stored(times(98, bad), 1), 7).reached, 7)
  })

  it("are those of the pushes as they are now, whatever became of them in between", () => {
    const fates = fc.constantFrom(
      ...(["timeout", "throttled", "push-service-slow"] as const).map((reason) => ({
        ...{ fate: "retrying" as const, reason }
      })),
      ...([{ fate: "dead", reason: "refused" }] as const),
      ...([{ fate: "delivered", reason: "accepted" }] as const)
    )
    const pushes = fc.array(fc.array(fates, { minLength: 1, maxLength: 4 }), { maxLength: 60 })
    fc.assert(
      fc.property(pushes, (list) => {
        let failures = noFailures(1)
        let [attempted, failed] = [0, 0]
        for (const attempts of list) {
          let former: PushResult | undefined
          for (const { fate, reason } of attempts) {
            const attempt = (former?.attempt ?? 0) + (reason === "push-service-slow" ? 0 : 1)
            const push = made(fate, reason, attempt)
            const { reason: before = reason, attempt: at = 0 } = former ?? {}
            const next =
              former === undefined ? push : { ...push, former: { reason: before, attempt: at } }
            failures = evolveFailures(failures, stored([next as PushResult]), 4)
            former = push
            if (fate !== "retrying") break
          }
          if (former!.attempt === 0) continue
          attempted += 1
          failed += Number(
            former!.fate === "dead" ||
              (former!.fate === "retrying" && former!.reason !== "throttled")
          )
        }
        assert.deepStrictEqual(countsOf(failures), [attempted, failed])
      })
    )
  })
})

describe("the header of a share", () => {
  it("reads what a number of a body is written as", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, minExcluded: true, max: 1, noNaN: true }), (share) => {
        assert.deepStrictEqual(pauseWhenOf(pauseWhenText({ failed_share: share })), {
          failed_share: share
        })
      })
    )
  })

  it("is read only with a number above 0 and of at most 1", () => {
    for (const text of ["", "0.2", "failed_share=", "failed_share=0", "failed_share=1.1"])
      assert.isUndefined(pauseWhenOf(text), text)
    for (const text of ["failed_share=-0.1", "failed_share=0x1", "failed_share=.2.", "x=0.2"])
      assert.isUndefined(pauseWhenOf(text), text)
    assert.deepStrictEqual(pauseWhenOf("failed_share=1"), { failed_share: 1 })
  })
})
