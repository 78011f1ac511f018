// The progress of a broadcast: what the outcomes of its pushes add up to. Counts by fate, details
// by reason and push service, and the share of failed pushes by which it pauses itself. Pure.
import * as Schema from "effect/Schema"
import type { Fate, Outcome, Plan, PushResult } from "./outcome.ts"
import { isThrottling, type StoredReason } from "./reason.ts"
import { pushServiceOf } from "./subscription/endpoint.ts"

/** accepted = delivered + waiting + retrying + expired + dead + gone + cancelled */
const Counts = Schema.Struct({
  accepted: Schema.Int,
  delivered: Schema.Int,
  retrying: Schema.Int,
  gone: Schema.Int,
  dead: Schema.Int,
  expired: Schema.Int,
  /** Absent: none. */
  cancelled: Schema.optionalKey(Schema.Int)
})

/** Times that each word was counted. A word stays once it was counted, even with 0. */
export const CountsBy = Schema.Record(Schema.String, Schema.Int)
export type CountsBy = typeof CountsBy.Type

/**
 * Times that each duration was counted: a place, then the counts of it and of the places behind
 * it. Place k is about 1.17^k ms. Neighbours differ by 17 %, so that no duration is
 * further than 10 % from its place. A minute is at place 70.
 */
export const Durations = Schema.Array(Schema.Int)
export type Durations = typeof Durations.Type

/** Fewer attempted pushes say little. */
const attemptedMin = 100

/** Counts of the pushes whose first attempt was in one run of the broadcast. */
export const Failures = Schema.Struct({
  /** The share that pauses the broadcast. */
  share: Schema.Number,
  run: Schema.Int,
  attempted: Schema.Int,
  failed: Schema.Int,
  /** Sequence in WORK of the outcome by which the share was reached. Absent: it is not. */
  reached: Schema.optionalKey(Schema.Int),
  /** The counts at that outcome: a pause that is stored later says by what it is made. */
  because: Schema.optionalKey(Schema.Struct({ attempted: Schema.Int, failed: Schema.Int }))
})
export type Failures = typeof Failures.Type

export const noFailures = (share: number): Failures => ({ share, run: 0, attempted: 0, failed: 0 })

/** More than any broadcast has: a third of all reasons. */
const reasonsMax = 32
const servicesMax = 8

const ServiceDetails = Schema.Struct({
  /** Pushes by outcome. */
  fates: CountsBy,
  /** Answers by the time that they took. */
  durations: Durations
})

export const Details = Schema.Struct({
  /** Pushes by the reason of their outcome. */
  reasons: CountsBy,
  services: Schema.Record(Schema.String, ServiceDetails),
  /** When a push service accepted the first push, and the last one. */
  firstDeliveredAt: Schema.optionalKey(Schema.Int),
  lastDeliveredAt: Schema.optionalKey(Schema.Int)
})
export type Details = typeof Details.Type
export const noDetails: Details = { reasons: {}, services: {} }

/** The value of a key in the bucket `broadcasts`, and the body of `broadcast.finished/1`. */
export const Progress = Schema.Struct({
  v: Schema.Literal(1),
  broadcast: Schema.Int,
  ...Counts.fields,
  /** As in the plan. */
  people: Schema.optionalKey(Schema.Int),
  shards: Schema.Int,
  shardsDone: Schema.Int,
  /** As in the plan. */
  since: Schema.optionalKey(Schema.Int),
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  /** Sequence in WORK of the last message counted. */
  seq: Schema.Int,
  lastModified: Schema.Int,
  finished: Schema.Boolean,
  /** As in outcomes, of all shards so far. */
  withoutSubscription: Schema.optionalKey(Schema.Int),
  /** Absent: no share of failed pushes pauses the broadcast. */
  failures: Schema.optionalKey(Failures),
  /** Absent: no push has an outcome. */
  details: Schema.optionalKey(Details)
})
export type Progress = typeof Progress.Type

export const startProgress = (plan: Plan, seq: number): Progress =>
  finish({
    v: 1,
    broadcast: plan.broadcast,
    accepted: 0,
    delivered: 0,
    retrying: 0,
    gone: 0,
    dead: 0,
    expired: 0,
    ...(plan.people === undefined ? {} : { people: plan.people }),
    shards: plan.shards,
    shardsDone: 0,
    ...(plan.since === undefined ? {} : { since: plan.since }),
    acceptedAt: plan.acceptedAt,
    expiresAt: plan.expiresAt,
    seq,
    lastModified: plan.at,
    finished: false,
    ...(plan.pauseShare === undefined ? {} : { failures: noFailures(plan.pauseShare) })
  })

/**
 * Counts one outcome stored at `seq`. `of`: first attempts of a shard, or one push that was
 * retrying.
 */
export const evolveProgress = (
  progress: Progress,
  outcome: Outcome,
  of: "shard" | "push",
  seq: number
): Progress => {
  if (seq <= progress.seq) return progress
  const { results, withoutSubscription: without } = outcome
  const { details = noDetails, failures } = progress
  const next = {
    ...progress,
    seq,
    lastModified: Math.max(progress.lastModified, outcome.at),
    ...(without === undefined
      ? {}
      : { withoutSubscription: (progress.withoutSubscription ?? 0) + without }),
    ...(results.length > 0 && { details: evolveDetails(details, results, of === "push") }),
    ...(failures !== undefined && { failures: evolveFailures(failures, outcome, seq) })
  }
  next.accepted += outcome.pushes
  for (const { fate } of results) {
    if (of === "push") next.retrying -= 1
    next[fate] = (next[fate] ?? 0) + 1
  }
  if (outcome.final && of === "shard") next.shardsDone += 1
  return finish(next)
}

const finish = (progress: Progress): Progress => ({
  ...progress,
  finished:
    progress.shardsDone === progress.shards && waiting(progress) === 0 && progress.retrying === 0
})

export const waiting = (counts: typeof Counts.Type): number => {
  const { accepted, cancelled = 0, dead, delivered, expired, gone, retrying } = counts
  return accepted - delivered - retrying - gone - dead - expired - cancelled
}

/** The counts of a broadcast, which add up. */
export const countsOf = (progress: typeof Counts.Type) => {
  const { accepted, cancelled = 0, dead, delivered, expired, gone, retrying } = progress
  const fates = { delivered, waiting: waiting(progress), retrying, expired, dead, gone }
  return { accepted, ...fates, ...(cancelled > 0 && { cancelled }) }
}

interface ServiceDraft {
  readonly fates: MutableCountsBy
  readonly durations: Array<number>
}

/** Details that are counted on: what changes is a copy. */
interface Draft {
  readonly reasons: MutableCountsBy
  readonly services: Record<string, typeof ServiceDetails.Type>
  readonly copies: Map<string, ServiceDraft>
  first: number
  last: number
}

/** Counts results. `isRetry`: of pushes that were retrying. */
export const evolveDetails = (
  { firstDeliveredAt, lastDeliveredAt, reasons, services }: Details,
  results: ReadonlyArray<PushResult>,
  isRetry: boolean
): Details => {
  const draft: Draft = {
    reasons: { ...reasons },
    services: { ...services },
    copies: new Map(),
    first: firstDeliveredAt ?? Number.POSITIVE_INFINITY,
    last: lastDeliveredAt ?? 0
  }
  for (const result of results) count(draft, result, isRetry)
  const times = { firstDeliveredAt: draft.first, lastDeliveredAt: draft.last }
  return {
    reasons: draft.reasons,
    services: draft.services,
    ...(draft.last === 0 ? {} : times)
  }
}

const count = (draft: Draft, result: PushResult, isRetry: boolean): void => {
  const { at, fate, former, millis, reason, status } = result
  const { reasons } = draft
  const of = serviceIn(draft, pushServiceOf(result))
  if (isRetry) {
    add(of.fates, "retrying", -1)
    if (former !== undefined) add(reasons, boundedWord(reasons, former.reason, reasonsMax), -1)
  }
  add(of.fates, fate, 1)
  add(reasons, boundedWord(reasons, reason, reasonsMax), 1)
  if (status !== undefined && millis > 0) addMillis(of.durations, millis)
  if (fate !== "delivered") return
  draft.first = Math.min(draft.first, at)
  draft.last = Math.max(draft.last, at)
}

const serviceIn = ({ copies, services }: Draft, name: string): ServiceDraft => {
  const word = boundedWord(services, name, servicesMax)
  const known = copies.get(word)
  if (known !== undefined) return known
  const { durations = [], fates } = services[word] ?? {}
  const copy = { fates: { ...fates }, durations: [...durations] }
  services[word] = copy
  copies.set(word, copy)
  return copy
}

type MutableCountsBy = Record<string, number>

const otherWord = "other"

/**
 * The word that a word is counted as: itself, or `other` if it is new and there are `max` already.
 * Messages choose the words, and what is stored of them is bounded.
 */
const boundedWord = (known: object, word: string, max: number): string =>
  Object.hasOwn(known, word) || Object.keys(known).length < max ? word : otherWord

const add = (counts: MutableCountsBy, word: string, by: number): void => {
  counts[word] = (counts[word] ?? 0) + by
}

const step = Math.log(1.17)
const millisAt = (place: number): number => Math.round(Math.exp(step * place))

/** Counts a duration from 1 ms on. */
export const addMillis = (durations: Array<number>, millis: number): void => {
  const place = Math.round(Math.log(millis) / step)
  if (durations.length === 0) durations.push(place)
  while (place < durations[0]!) durations.splice(0, 1, durations[0]! - 1, 0)
  const i = place - durations[0]! + 1
  while (durations.length <= i) durations.push(0)
  durations[i]! += 1
}

/**
 * The duration that a share of all counted ones does not exceed, within 10 %. Undefined: none is
 * counted.
 */
export const quantile = (all: ReadonlyArray<Durations>, share: number): number | undefined => {
  const places = all
    .flatMap(([first = 0, ...counts]) => counts.map((count, i) => [first + i, count] as const))
    .sort(([a], [b]) => a - b)
  let left = share * places.reduce((sum, [, count]) => sum + count, 0)
  const found = places.find(([, count]) => {
    left -= count
    return left <= 0
  })
  return found && millisAt(found[0])
}

interface Attempt {
  readonly fate: Fate
  readonly reason: StoredReason
  readonly attempt: number
}

/**
 * Counts an outcome that was stored at `seq`. A resume begins anew: the publisher has seen what
 * failed before.
 */
export const evolveFailures = (
  before: Failures,
  { results, run = 0 }: Outcome,
  seq: number
): Failures => {
  if (run < before.run) return before
  const present = run === before.run ? before : { ...noFailures(before.share), run }
  let { attempted, failed } = present
  for (const result of results) {
    const former = result.former && { ...result.former, fate: "retrying" as const }
    attempted += Number(isAttempted(result)) - Number(former !== undefined && isAttempted(former))
    failed += Number(isFailed(result)) - Number(former !== undefined && isFailed(former))
  }
  const next = { ...present, attempted, failed }
  const isReached = attempted >= attemptedMin && failed / attempted >= next.share
  return isReached && next.reached === undefined
    ? { ...next, reached: seq, because: { attempted, failed } }
    : next
}

const isAttempted = ({ attempt }: Attempt): boolean => attempt > 0

const isFailed = (push: Attempt): boolean => {
  if (!isAttempted(push)) return false
  if (push.fate === "retrying") return !isThrottling(push.reason)
  return push.fate === "dead" || push.fate === "expired"
}
