// The jobs between a broadcast and its outcomes: shards, retries, dead letters, retry delays. Pure.
import * as Schema from "effect/Schema"
import { Rate, Sequence, Urgency } from "./broadcast.ts"
import { type RefusalReason, type RetryReason, StoredReason } from "./reason.ts"

/** A part of the subjects made from a job. Any NATS client can write jobs, so check it. */
const Token = Schema.String.pipe(Schema.check(Schema.isPattern(/^[A-Za-z0-9_=-]{1,765}$/u)))
const Shard = Schema.String.pipe(
  Schema.check(Schema.isPattern(/^(?:all|[0-9a-f](?:\.[0-9a-f]){0,3})$/u))
)
/** Revisions of the buckets that show everything appended up to some sequence of LOG. */
export const MinimumRevisions = Schema.Struct({
  subscriptions: Schema.Int,
  registrations: Schema.Int
})
export type MinimumRevisions = typeof MinimumRevisions.Type

/**
 * The parts of a broadcast that a push needs. Every job carries them, so workers do not read them
 * again.
 */
export const BroadcastRef = Schema.Struct({
  /** Sequence of the broadcast in LOG: its id, and the message with its payload. */
  broadcast: Sequence,
  channel: Token,
  /** When the broadcast was accepted, or started if that was later. */
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  urgency: Urgency,
  topic: Schema.optionalKey(Schema.String),
  /** Sequence of the start in LOG: the audience is that of then. Absent: `broadcast`. */
  since: Schema.optionalKey(Sequence),
  /** Sequence of the message in LOG with the payload. Absent: `broadcast`. */
  payload: Schema.optionalKey(Sequence),
  /** The run of the broadcast that the job is of. Absent: 0, before any pause. */
  run: Schema.optionalKey(Schema.Int),
  rate: Schema.optionalKey(Rate)
})
export type BroadcastRef = typeof BroadcastRef.Type

/** The sequence of LOG at which the broadcast started: its audience is that of then. */
export const sinceOf = ({
  broadcast,
  since = broadcast
}: Pick<BroadcastRef, "broadcast" | "since">): number => since

export const ShardJob = Schema.Struct({
  ...BroadcastRef.fields,
  shard: Shard,
  /** Send only to subscriptions that this broadcast did not reach. */
  redrives: Schema.optionalKey(Schema.Int),
  /** See {@link Plan}. */
  stride: Schema.optionalKey(Sequence),
  floor: MinimumRevisions
})
export type ShardJob = typeof ShardJob.Type

/**
 * Most registrations of a shard on average. One multi-get returns up to 1024; a larger shard is
 * read in parts. A shard costs about six requests to NATS, so small ones are expensive: measured 25
 * us of CPU per push with 256 shards of 39, 2 us with 16 of 625.
 */
const registrationsPerShard = 1_000

/** Returns the depth of the shards of a channel: it has 16^depth of them. */
export const shardDepth = (registrations: number): number => {
  let depth = 0
  while (depth < 4 && registrations > registrationsPerShard * 16 ** depth) depth++
  return depth
}

/** A job that its worker does not end, or begin, at once must not slow its broadcast. */
const secondsAtOnce = 4

/**
 * Shards of a limited broadcast that have jobs at once: enough that some have pushes to send while
 * others are read, or wait because their worker was killed. Each shard that ends appends the job of
 * the one that is so many places behind.
 */
export const shardsAtOnce = (rate: number, pushesPerShard: number): number =>
  Math.min(Math.max(4, Math.ceil((rate * secondsAtOnce) / pushesPerShard)), 64)

/** The shard that is so many places behind another one of the same depth; undefined: none is. */
export const shardBehind = (shard: string, places: number): string | undefined => {
  if (shard === "all") return undefined
  const digits = shard.replaceAll(".", "")
  const behind = Number.parseInt(digits, 16) + places
  if (behind >= 16 ** digits.length) return undefined
  return [...behind.toString(16).padStart(digits.length, "0")].join(".")
}

/**
 * One push to try again. Its last outcome has the attempt number and the time of the next attempt.
 */
export const RetryJob = Schema.Struct({
  ...BroadcastRef.fields,
  user: Token,
  subscription: Token,
  /** Sequence of the subscription's put. A subscription replaced since then gets nothing. */
  generation: Schema.Int,
  /** Counts from when the server stored the job, so that no worker's clock can change it. */
  firstWaitMillis: Schema.Int,
  /** Attempts made before this message was published. */
  attempts: Schema.Int,
  /** The reason of the shard's outcome. */
  reason: StoredReason,
  /** The push service, and the language of the variant, as in outcomes. */
  service: Schema.optionalKey(Schema.String),
  locale: Schema.optionalKey(Schema.String),
  /** The run of the first attempt. Absent: 0. */
  firstRun: Schema.optionalKey(Schema.Int)
})
export type RetryJob = typeof RetryJob.Type

export const DeadLetter = Schema.Struct({
  ...BroadcastRef.fields,
  user: Schema.String,
  subscription: Schema.String,
  generation: Schema.Int,
  reason: StoredReason,
  status: Schema.optionalKey(Schema.Int),
  /** The push service, as in outcomes. */
  service: Schema.optionalKey(Schema.String),
  attempts: Schema.Int,
  at: Schema.Int
})
export type DeadLetter = typeof DeadLetter.Type

/**
 * Attempts per push, the first included. The seven full delays between them add up to 21 minutes.
 */
export const attemptsMax = 8
/**
 * Attempts where WNS says that it dropped the push. An error of its own may pass; a client that
 * rejects the notification rejects each attempt.
 */
const attemptsDroppedMax = 2

/** Returns the number of the attempt after which a push that failed for this reason is dead. */
export const attemptsMaxOf = (reason: RetryReason | RefusalReason): number =>
  reason === "dropped" ? attemptsDroppedMax : attemptsMax

const delayMillisMax = 15 * 60_000
const retryAfterMillisMax = 24 * 60 * 60_000

/** First delay after a 429 without Retry-After: 60 s by default, where other failures wait 10 s. */
export const throttledBaseMillis = (baseMillis: number): number => 6 * baseMillis

/** No wait is longer: a Retry-After at its most, and its spread. */
const waitMillisMax = retryAfterMillisMax * 1.1

/**
 * Returns the milliseconds that the retries after the next one take at the most, when `attempt`
 * (from 1) failed and the last one is `attemptsLast`. A Retry-After may make them longer.
 */
export const laterRetriesMillis = (
  attempt: number,
  attemptsLast: number,
  baseMillis: number
): number => {
  let sum = 0
  for (let n = attempt + 1; n < attemptsLast; n++)
    sum += Math.min(delayMillisMax, baseMillis * 2 ** (n - 1))
  return sum
}

/**
 * Returns what is left of a wait at `now`. `storedAt`: when the server stored the message that asks
 * for the wait. Never more than the wait, whatever the clocks say. With the server's clock set back
 * since then, only the first delivery waits: a later one comes after the wait.
 */
export const remainingMillis = (
  waitMillis: number,
  storedAt: number,
  now: number,
  isFirstDelivery: boolean
): number => {
  const wait = Math.min(Math.max(0, waitMillis), waitMillisMax)
  if (now < storedAt) return isFirstDelivery ? wait : 0
  return Math.max(0, storedAt + wait - now)
}

/**
 * Returns the milliseconds until the next attempt after `attempt` (from 1) failed: exponential from
 * `baseMillis`, at most 15 minutes, spread over its upper half. A longer Retry-After wins, clamped
 * to 1 s .. 24 h and spread by 10 %. `random` is in [0, 1).
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
