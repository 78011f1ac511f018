// The outcomes of the pushes of a broadcast, by reason, push service, language and minute, those
// that are tried again, and how long answers took.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { Fate, PushResult } from "#domain/outcome.ts"
import { evolveProgress, type Progress, startProgress } from "#domain/progress.ts"
import {
  addMillis,
  type Details,
  evolveDetails,
  localesIn,
  noDetails,
  quantile
} from "#domain/progress-details.ts"
import type { StoredReason } from "#domain/reason.ts"
import {
  evolveTimeline,
  finalFates,
  noTimeline,
  pointsOf,
  type Timeline
} from "#domain/timeline.ts"
import { buckets } from "#streams/buckets.ts"
import { plan, result } from "#test/outcome-messages.ts"

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

const life = { acceptedAt: 60_000_000, expiresAt: 60_000_000 + 86_400_000 }
/** After results of a shard, or of pushes that were retrying. */
const firstTried = (before: Details, ...results: ReadonlyArray<PushResult>) =>
  evolveDetails(before, results, "shard", life)
const retried = (before: Details, ...results: ReadonlyArray<PushResult>) =>
  evolveDetails(before, results, "push", life)

describe("the details of a broadcast", () => {
  it("count pushes by reason and push service, and the answers alone by duration", () => {
    const { timeline: _, ...details } = firstTried(
      noDetails,
      made("delivered", "accepted", { service: "google", status: 201, millis: 42, at: 1_700 }),
      made("delivered", "accepted", { service: "google", status: 201, millis: 43, at: 1_500 }),
      made("gone", "gone", { status: 410, millis: 900 }),
      made("expired", "expired", { attempt: 0, millis: 0 }),
      made("dead", "internal", { service: "mozilla", millis: 10_000 })
    )
    assert.deepStrictEqual(details, {
      reasons: { accepted: 2, gone: 1, expired: 1, internal: 1 },
      services: {
        google: { fates: { delivered: 2 }, durations: [24, 2] },
        other: { fates: { gone: 1, expired: 1 }, durations: [43, 1] },
        mozilla: { fates: { dead: 1 }, durations: [] }
      },
      firstDeliveredAt: 1_500,
      lastDeliveredAt: 1_700
    })
  })

  it("move a push that was retrying to its next reason, and to its next outcome", () => {
    const first = firstTried(noDetails, made("retrying", "timeout"), made("retrying", "throttled"))
    const again = retried(first, made("retrying", "server-error", formerly("timeout")))
    const last = retried(again, made("dead", "refused", formerly("throttled")))
    assert.deepStrictEqual(again.reasons, { timeout: 0, throttled: 1, "server-error": 1 })
    assert.deepStrictEqual(last.reasons, {
      ...{ timeout: 0, throttled: 0, "server-error": 1, refused: 1 }
    })
    assert.deepStrictEqual(last.services["other"]?.fates, { retrying: 1, dead: 1 })
  })

  it("say until when pushes are tried again: to the end of all, or as outcomes say", () => {
    const first = firstTried(
      noDetails,
      made("retrying", "timeout", { until: 70_000_000 }),
      made("retrying", "timeout", { until: 69_000_000 }),
      made("retrying", "breaker-open")
    )
    assert.deepStrictEqual(first.retries, {
      timeout: { pushes: 2, until: 70_000_000 },
      "breaker-open": { pushes: 1, until: life.expiresAt }
    })
    const last = retried(first, made("delivered", "accepted", formerly("timeout")))
    assert.deepStrictEqual(last.retries?.["timeout"], { pushes: 1, until: 70_000_000 })
    assert.notProperty(firstTried(noDetails, made("gone", "gone")), "retries")
  })

  it("count by language what was sent, of a push its last variant, and the others as data", () => {
    const first = firstTried(
      noDetails,
      made("delivered", "accepted", { locale: "de" }),
      made("retrying", "timeout", { locale: "de" }),
      made("cancelled", "cancelled", { locale: "toString" }),
      made("gone", "gone"),
      made("retrying", "timeout")
    )
    assert.deepStrictEqual(localesIn(first), {
      de: { delivered: 1, retrying: 1 },
      toString: { cancelled: 1 },
      data: { delivered: 0, retrying: 1, cancelled: 0, gone: 1 }
    })
    const former = { reason: "timeout" as StoredReason, attempt: 1 }
    const last = retried(
      first,
      made("delivered", "accepted", { locale: "fr", former: { ...former, locale: "de" } }),
      made("dead", "refused", { locale: "de", former })
    )
    assert.deepStrictEqual(localesIn(last), {
      de: { delivered: 1, retrying: 0, dead: 1 },
      toString: { cancelled: 1 },
      fr: { delivered: 1 },
      data: { delivered: 0, retrying: 0, cancelled: 0, gone: 1, dead: 0 }
    })
    assert.isUndefined(localesIn(firstTried(noDetails, made("gone", "gone"))))
  })

  it("keep what they were made from", () => {
    const more = { status: 201, locale: "de" }
    const before = firstTried(noDetails, made("retrying", "timeout", more), made("gone", "gone"))
    const copy = structuredClone(before)
    firstTried(before, made("gone", "gone", { at: 90_000_000 }), made("retrying", "timeout", more))
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
          details = firstTried(details, made("retrying", reason, { service }))
        assert.strictEqual(waitingIn(details), list.length)
        for (const [reason, service, next] of list)
          details = retried(details, made("delivered", next, { service, ...formerly(reason) }))
        const { reasons, services } = details
        assert.isAtMost(Object.keys(reasons).filter((each) => each !== "other").length, 32)
        assert.isAtMost(Object.keys(services).filter((each) => each !== "other").length, 8)
        assert.isTrue(Object.values(reasons).every((count) => count >= 0))
        assert.strictEqual(sum(reasons), list.length)
        assert.strictEqual(waitingIn(details), 0)
        const delivered = Object.values(services).map(({ fates }) => fates["delivered"] ?? 0)
        assert.strictEqual(
          delivered.reduce((a, b) => a + b, 0),
          list.length
        )
      }),
      { numRuns: 50 }
    )
  })
})

/** Pushes that are tried again, of all reasons. */
const waitingIn = ({ retries = {} }: Details): number =>
  Object.values(retries).reduce((all, { pushes }) => all + pushes, 0)

/** One outcome of a push: its fate, reason, language and minute. */
const step = fc.record({
  reason: fc.constantFrom("timeout", "throttled", "breaker-open"),
  locale: fc.constantFrom(undefined, "de", "pt-BR"),
  minute: fc.integer({ min: -5, max: 2_000 })
})
const pushOf = fc.record({
  service: fc.constantFrom("google", "apple"),
  retries: fc.array(step, { maxLength: 3 }),
  end: fc.option(fc.record({ fate: fc.constantFrom(...finalFates), last: step }))
})
type Push = typeof pushOf extends fc.Arbitrary<infer A> ? A : never

/** The results of a push, each with what it says of the one before. */
const resultsOf = ({ end, retries, service }: Push, i: number): ReadonlyArray<PushResult> => {
  const steps = [
    ...retries.map((each) => ({ fate: "retrying" as const, ...each })),
    ...(end === null ? [] : [{ fate: end.fate, ...end.last }])
  ]
  return steps.map(({ fate, locale, minute, reason }, n) => {
    const former = steps[n - 1]
    const at = life.acceptedAt + minute * 60_000
    return made(fate, reason, {
      ...{ subscription: `s${i}`, service, at, millis: 40 + n, status: 201, attempt: n },
      ...(locale !== undefined && { locale }),
      ...(fate === "retrying" && reason === "timeout" && { until: at + 1_000 }),
      ...(former !== undefined && {
        former: {
          ...{ reason: former.reason as StoredReason, attempt: n - 1 },
          ...(former.locale !== undefined && { locale: former.locale })
        }
      })
    })
  })
}

/** Folds the results of all pushes in an order that `choices` picks, some of them twice. */
const folded = (pushes: ReadonlyArray<Push>, choices: ReadonlyArray<number>): Progress => {
  const left = pushes.map((push, i) => [...resultsOf(push, i)]).filter(({ length }) => length > 0)
  let progress = startProgress({ ...plan(1), ...life }, 5)
  for (let n = 0; left.length > 0; n++) {
    const choice = choices[n % choices.length]!
    const place = choice % left.length
    const found = left[place]!.shift()!
    if (left[place]!.length === 0) left.splice(place, 1)
    const isRetry = found.former !== undefined
    const outcome = { broadcast: 9, results: [found], final: isRetry, at: found.at }
    const fold = (of: Progress) =>
      evolveProgress(
        of,
        { ...outcome, pushes: Number(!isRetry) },
        isRetry ? "push" : "shard",
        6 + n
      )
    progress = fold(progress)
    if (choice > 30) progress = fold(progress)
  }
  return progress
}

describe("any order of the outcomes of a broadcast", () => {
  const orders = fc.array(fc.nat(60), { minLength: 1, maxLength: 30 })

  it("makes the same details, of which each part adds up to the counts", () => {
    fc.assert(
      fc.property(fc.array(pushOf, { maxLength: 12 }), orders, orders, (pushes, one, other) => {
        const { seq: _, ...progress } = folded(pushes, one)
        const { seq: __, ...again } = folded(pushes, other)
        assert.deepStrictEqual(progress, again)
        const { details = noDetails, retrying } = progress
        assert.strictEqual(waitingIn(details), retrying)
        const points = pointsOf(details.timeline ?? noTimeline)
        const locales = Object.values(localesIn(details) ?? {})
        for (const fate of [...finalFates, "retrying"] as const) {
          const wanted = progress[fate] ?? 0
          if (fate !== "retrying")
            assert.strictEqual(
              points.reduce((all, point) => all + point[fate], 0),
              wanted
            )
          const ofLocales = locales.reduce((all, counts) => all + (counts[fate] ?? 0), 0)
          if (locales.length > 0) assert.strictEqual(ofLocales, wanted)
          assert.isTrue(locales.every((counts) => (counts[fate] ?? 0) >= 0))
        }
      })
    )
  })
})

describe("the timeline of a broadcast", () => {
  const at = (...minutes: ReadonlyArray<number>) =>
    minutes.map((minute) => made("delivered", "accepted", { at: minute * 60_000 }))
  const counted = (results: ReadonlyArray<PushResult>, of = life, before: Timeline = noTimeline) =>
    evolveTimeline(before, results, of)
  const month = { acceptedAt: 0, expiresAt: 28 * 86_400_000 }

  it("has the points of each minute, those between two outcomes too", () => {
    const timeline = counted([...at(1_000, 1_002), made("dead", "refused", { at: 60_120_001 })])
    const none = { delivered: 0, expired: 0, dead: 0, gone: 0, cancelled: 0 }
    assert.strictEqual(timeline.minutes, 1)
    assert.deepStrictEqual(pointsOf(timeline), [
      { at: 60_000_000, ...none, delivered: 1 },
      { at: 60_060_000, ...none },
      { at: 60_120_000, ...none, delivered: 1, dead: 1 }
    ])
    assert.deepStrictEqual(pointsOf(noTimeline), [])
    assert.strictEqual(counted([made("retrying", "timeout")]), noTimeline)
  })

  it.each([
    [0, 299, 1],
    [0, 300, 5],
    [4, 1_499, 5],
    [4, 1_500, 15],
    [14, 4_500, 60],
    [0, 17_999, 60],
    [0, 18_000, 180],
    [0, 28 * 1_440 + 1_440, 180]
  ])("from minute %d to minute %d has points of %d minutes", (first, last, minutes) => {
    const timeline = counted(at(last, first), month)
    assert.strictEqual(timeline.minutes, minutes)
    assert.isAtMost(pointsOf(timeline).length, 300)
    assert.deepStrictEqual(counted(at(first), month, counted(at(last), month)), timeline)
  })

  it("is not made wide by a clock that is wrong", () => {
    const { fates, minutes } = counted(at(0, 1_000, 99_999_999))
    assert.deepStrictEqual([minutes, fates["delivered"]?.length], [15, 194])
    assert.strictEqual(sum(Object.fromEntries(fates["delivered"]!.slice(1).entries())), 3)
  })

  it("is the same in any order and in any parts", () => {
    const minutes = fc.array(fc.integer({ min: 0, max: 45_000 }), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(minutes, fc.nat(60), (list, cut) => {
        const all = counted(at(...list), month)
        const [head, tail] = [at(...list.slice(cut)), at(...list.slice(0, cut)).reverse()]
        assert.deepStrictEqual(counted(tail, month, counted(head, month)), all)
        const one = at(...list).reduce((so, each) => counted([each], month, so), noTimeline)
        assert.deepStrictEqual(one, all)
      })
    )
  })
})

it("fits into bucket and LOG with 100 million pushes and all words that there can be", () => {
  const pushes = 100_000_000
  const some = Math.floor(pushes / 300)
  const counts = Object.fromEntries([...finalFates, "retrying"].map((fate) => [fate, pushes]))
  const words = (count: number, chars: number) =>
    Array.from({ length: count }, (_, i) => String(i).padStart(chars, "x"))
  const details: Details = {
    reasons: Object.fromEntries(words(33, 35).map((word) => [word, pushes])),
    services: Object.fromEntries(
      words(9, 10).map((word) => [
        word,
        { fates: counts, durations: [3, ...Array.from({ length: 70 }, () => 100_000)] }
      ])
    ),
    retries: Object.fromEntries(
      words(25, 22).map((word) => [word, { pushes, until: 1_900_000_000_000 }])
    ),
    locales: Object.fromEntries(words(20, 10).map((word) => [word, counts])),
    timeline: {
      minutes: 180,
      fates: Object.fromEntries(
        finalFates.map((fate) => [fate, [29_000_000, ...Array.from({ length: 300 }, () => some)]])
      )
    },
    firstDeliveredAt: 1_900_000_000_000,
    lastDeliveredAt: 1_900_000_000_000
  }
  const text = JSON.stringify({ ...startProgress(plan(65_536), 9), details })
  assert.isBelow(text.length, buckets.broadcasts.maxValueBytes)
})
