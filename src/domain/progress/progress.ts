// The progress of a broadcast: the counts that the outcomes of its pushes add up to. Pure.
import * as Schema from "effect/Schema"
import type { Outcome, Plan } from "../outcome.ts"
import { Details, evolveDetails, noDetails } from "./details.ts"
import { evolveFailures, Failures, noFailures } from "./failures.ts"

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

const finish = (progress: Progress): Progress => ({
  ...progress,
  finished:
    progress.shardsDone === progress.shards && waiting(progress) === 0 && progress.retrying === 0
})

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
