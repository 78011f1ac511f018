// What became of pushes: the fates a push can have, the messages that record them, and the counts they add up to. Pure.
import { Schema } from "effect"
import { MinimumRevisions } from "./minimum-revisions.ts"

/**
 * Every state of an accepted push. `waiting` is not recorded: it is what remains. Final: delivered, gone, dead, expired.
 *
 *   waiting ──▶ delivered        the push service took it (2xx)
 *      │  └───▶ gone             the subscription is no more: 404, 410, or removed by its user meanwhile
 *      │  └───▶ dead             refused for good, or attempts used up: a dead letter tells why
 *      │  └───▶ expired          its TTL ran out
 *      └──────▶ retrying ──▶ any of the four
 */
export const Fate = Schema.Literals(["delivered", "retrying", "gone", "dead", "expired"])
export type Fate = typeof Fate.Type

/** Whether a push with this fate ended unsent to a subscription that may be well: sending it again makes sense. */
export const isUnreached = (fate: Fate): boolean => fate === "dead" || fate === "expired"

/** One attempt at one push, as recorded for the audit. Never holds an endpoint, a key or an answer's body. */
export const PushResult = Schema.Struct({
  user: Schema.String,
  subscription: Schema.String,
  fate: Fate,
  /** HTTP status of the push service; absent when there was no answer. */
  status: Schema.optionalKey(Schema.Int),
  /** A word for what happened, from a closed list (see delivery/classify.ts). */
  reason: Schema.String,
  /** Attempts so far that count towards the most a push gets; one held back before it was sent does not. */
  attempt: Schema.Int,
  /** How long the push service took. */
  millis: Schema.Int,
  /** Milliseconds since the epoch. */
  at: Schema.Int,
  /** When a retrying push is tried again. */
  nextAt: Schema.optionalKey(Schema.Int)
})
export type PushResult = typeof PushResult.Type

/** How a broadcast was cut up. Written once, so that every redelivery works on the same shards. */
export const Plan = Schema.Struct({
  broadcast: Schema.Int,
  depth: Schema.Int,
  shards: Schema.Int,
  /** Everything appended before the broadcast. */
  floor: MinimumRevisions,
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  at: Schema.Int
})
export type Plan = typeof Plan.Type

/** What became of some pushes of one shard (or of one push tried again). */
export const Outcome = Schema.Struct({
  broadcast: Schema.Int,
  /** By how much this message changes the number of pushes the shard is known to hold. */
  pushes: Schema.Int,
  results: Schema.Array(PushResult),
  /** The shard is done: every push of it has a fate. */
  final: Schema.Boolean,
  at: Schema.Int
})
export type Outcome = typeof Outcome.Type

/** accepted = delivered + waiting + retrying + expired + dead + gone */
const Counts = Schema.Struct({
  accepted: Schema.Int,
  delivered: Schema.Int,
  retrying: Schema.Int,
  gone: Schema.Int,
  dead: Schema.Int,
  expired: Schema.Int
})

/** The value of a key in the bucket `broadcasts`, and the body of the fact that a broadcast is finished. */
export const Progress = Schema.Struct({
  v: Schema.Literal(1),
  broadcast: Schema.Int,
  ...Counts.fields,
  shards: Schema.Int,
  shardsDone: Schema.Int,
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  /** Sequence in WORK of the last message counted. */
  seq: Schema.Int,
  lastModified: Schema.Int,
  finished: Schema.Boolean
})
export type Progress = typeof Progress.Type

export const waiting = (counts: typeof Counts.Type): number =>
  counts.accepted - counts.delivered - counts.retrying - counts.gone - counts.dead - counts.expired

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
    shards: plan.shards,
    shardsDone: 0,
    acceptedAt: plan.acceptedAt,
    expiresAt: plan.expiresAt,
    seq,
    lastModified: plan.at,
    finished: false
  })

/** Counts one outcome stored at `seq`. `of` tells where the pushes come from: a shard's first tries, or one that was retrying. */
export const evolveProgress = (
  progress: Progress,
  outcome: Outcome,
  of: "shard" | "push",
  seq: number
): Progress => {
  if (seq <= progress.seq) return progress
  const next = { ...progress, seq, lastModified: Math.max(progress.lastModified, outcome.at) }
  next.accepted += outcome.pushes
  for (const { fate } of outcome.results) {
    if (of === "push") next.retrying -= 1
    next[fate] += 1
  }
  if (outcome.final && of === "shard") next.shardsDone += 1
  return finish(next)
}

/** The value of `<channel>.pushes` in the bucket `channels`. */
export interface ChannelPushes {
  readonly v: 1
  readonly seq: number
  /** Pushes of this channel that a push service took. */
  readonly pushes: number
  readonly lastModified: number
}

export const emptyPushes: ChannelPushes = { v: 1, seq: 0, pushes: 0, lastModified: 0 }

export const evolvePushes = (
  pushes: ChannelPushes,
  outcome: Outcome,
  seq: number
): ChannelPushes => {
  if (seq <= pushes.seq) return pushes
  const delivered = outcome.results.filter(({ fate }) => fate === "delivered").length
  return {
    v: 1,
    seq,
    pushes: pushes.pushes + delivered,
    lastModified: delivered === 0 ? pushes.lastModified : Math.max(pushes.lastModified, outcome.at)
  }
}
