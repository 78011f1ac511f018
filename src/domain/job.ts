// The work between a broadcast and its outcomes: shard jobs, retries, dead letters, and when to try again. Pure.
import { Schema } from "effect"
import { Urgency } from "./broadcast.ts"
import { MinimumRevisions } from "./minimum-revisions.ts"

/** A part of the subjects that follow from a job; a foreign client may send anything. */
const Token = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_=-]{1,765}$/u)))
const Shard = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^(?:all|[0-9a-f](?:\.[0-9a-f]){0,3})$/u))
)
/** In a stream; a server asked for any other says that the question is wrong, not that there is nothing. */
const Sequence = Schema.Int.pipe(Schema.check(Schema.isGreaterThanOrEqualTo(1)))

/** What a push needs to know of its broadcast, carried by every job so that workers need not look it up. */
export const BroadcastRef = Schema.Struct({
  /** Sequence of the broadcast in LOG: its id, and where its payload stands. */
  broadcast: Sequence,
  channel: Token,
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  urgency: Urgency,
  topic: Schema.optionalKey(Schema.String)
})
export type BroadcastRef = typeof BroadcastRef.Type

export const ShardJob = Schema.Struct({
  ...BroadcastRef.fields,
  shard: Shard,
  /** Only to those whom this broadcast did not reach. */
  redrives: Schema.optionalKey(Schema.Int),
  floor: MinimumRevisions
})
export type ShardJob = typeof ShardJob.Type

/** One push to try again; which attempt it is and when it is due stand in its last outcome. */
export const RetryJob = Schema.Struct({
  ...BroadcastRef.fields,
  user: Token,
  subscription: Token,
  /** Sequence of the subscription's put: one that was replaced since is not sent to. */
  generation: Schema.Int,
  firstNextAt: Schema.Int,
  /** Attempts made before this message was published. */
  attempts: Schema.Int,
  /** Why it is tried again: the reason of the shard's outcome. Older jobs have none. */
  reason: Schema.optionalKey(Schema.String)
})
export type RetryJob = typeof RetryJob.Type

export const DeadLetter = Schema.Struct({
  ...BroadcastRef.fields,
  user: Schema.String,
  subscription: Schema.String,
  generation: Schema.Int,
  reason: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  attempts: Schema.Int,
  at: Schema.Int
})
export type DeadLetter = typeof DeadLetter.Type

/** Attempts a push gets, the first included; the seven full delays between them add up to about 21 minutes. */
export const attemptsMax = 8

const delayMillisMax = 15 * 60_000
const retryAfterMillisMax = 24 * 60 * 60_000

/** Throttled without a word for how long: a minute, where other failures wait 10 s. */
export const throttledBaseMillis = (baseMillis: number): number => 6 * baseMillis

/**
 * Milliseconds until the next attempt after `attempt` (from 1) failed: exponential from `baseMillis`, at most 15 minutes, spread over its upper
 * half. A push service that asks for more in Retry-After gets it, clamped to 1 s .. 24 h and spread by 10 %. `random` is in [0, 1).
 */
export const retryDelayMillis = (
  attempt: number,
  baseMillis: number,
  random: number,
  retryAfterMillis = 0
): number => {
  const backoff = Math.min(delayMillisMax, baseMillis * 2 ** (attempt - 1)) * (0.5 + random / 2)
  if (retryAfterMillis <= 0) return Math.round(backoff)
  const asked = Math.min(Math.max(retryAfterMillis, 1_000), retryAfterMillisMax) * (1 + random / 10)
  return Math.round(Math.max(backoff, asked))
}
