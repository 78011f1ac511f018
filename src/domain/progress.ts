// The progress of a broadcast: what the outcomes of its pushes add up to. Counts by fate, details,
// and the share of failed pushes by which it pauses itself. Pure.
import * as Schema from "effect/Schema"
import type { Fate, Outcome, Plan } from "./outcome.ts"
import { Details, evolveDetails, noDetails } from "./progress-details.ts"
import { isThrottling, type StoredReason } from "./reason.ts"

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

/** The value of a key in the bucket `broadcasts`, and the body of `broadcast.finished`. */
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
    ...(results.length > 0 && { details: evolveDetails(details, results, of, progress) }),
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

/**
 * The share of pushes with a last outcome, in ten thousandths. Pushes are known once their shard
 * has begun. So until all shards are done the share is of the people, if these are more.
 */
export const doneShare = (progress: Progress): number => {
  const { accepted, people = 0, retrying, shards, shardsDone } = progress
  const isWhole = shardsDone === shards
  const all = isWhole ? accepted : Math.max(accepted, people)
  const done = accepted - waiting(progress) - retrying
  return all === 0 ? Number(isWhole) : Math.floor((10_000 * done) / all) / 10_000
}

/** The counts of a broadcast, which add up. */
export const countsOf = (progress: typeof Counts.Type) => {
  const { accepted, cancelled = 0, dead, delivered, expired, gone, retrying } = progress
  const fates = { delivered, waiting: waiting(progress), retrying, expired, dead, gone }
  return { accepted, ...fates, ...(cancelled > 0 && { cancelled }) }
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
