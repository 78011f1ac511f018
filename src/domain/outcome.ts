// Outcomes of pushes: their fates, the messages that record them, and the pushes of channels. Pure.
import * as Schema from "effect/Schema"
import { MinimumRevisions, sinceOf } from "./job.ts"
import { StoredReason } from "./reason.ts"

/**
 * Every state of an accepted push. `waiting` is not recorded: it is the accepted pushes without a
 * fate. Final: delivered, gone, dead, expired, cancelled.
 *
 *   waiting ──▶ delivered        the push service accepted it (2xx)
 *      │  └───▶ gone             the subscription does not exist: 404, 410, or removed by its user
 *      │  └───▶ dead             refused for good, or attempts used up (see its dead letter)
 *      │  └───▶ expired          its TTL ran out
 *      │  └───▶ cancelled        its broadcast was cancelled
 *      └──────▶ retrying ──▶ any of the five
 */
export const Fate = Schema.Literals([
  "delivered",
  "retrying",
  "gone",
  "dead",
  "expired",
  "cancelled"
])
export type Fate = typeof Fate.Type

/**
 * Whether a push expired or died undelivered. Its subscription may be healthy: a redrive sends it
 * again.
 */
export const isUndelivered = (fate: Fate): boolean => fate === "dead" || fate === "expired"

/** One attempt at one push, as recorded for the audit. Holds no endpoint, key or response body. */
export const PushResult = Schema.Struct({
  user: Schema.String,
  subscription: Schema.String,
  fate: Fate,
  /** HTTP status of the push service; absent when there was no response. */
  status: Schema.optionalKey(Schema.Int),
  reason: StoredReason,
  /** Attempts so far that count towards `attemptsMax`. A deferral does not count. */
  attempt: Schema.Int,
  /** Duration of the attempt at the push service. */
  millis: Schema.Int,
  /** Milliseconds since the epoch. */
  at: Schema.Int,
  /** The push service, by its name; absent: not one of the known ones. */
  service: Schema.optionalKey(Schema.String),
  /** The language of the variant for this reader; absent: `data`, which is for all others. */
  locale: Schema.optionalKey(Schema.String),
  /** When a retrying push is tried again. */
  nextAt: Schema.optionalKey(Schema.Int),
  /** When a retrying push ends at the latest; absent: when its broadcast expires. */
  until: Schema.optionalKey(Schema.Int),
  /** The outcome before, of a push that was retrying. */
  former: Schema.optionalKey(
    Schema.Struct({
      reason: StoredReason,
      attempt: Schema.Int,
      locale: Schema.optionalKey(Schema.String)
    })
  )
})
export type PushResult = typeof PushResult.Type

/** Names one push of a broadcast: its user and subscription. */
export const pushKey = (user: string, subscription: string): string => `${user}.${subscription}`

/** The shards of a broadcast. Written once, so that every redelivery works on the same shards. */
export const Plan = Schema.Struct({
  broadcast: Schema.Int,
  depth: Schema.Int,
  shards: Schema.Int,
  /**
   * The jobs of so many shards are appended at first. Each shard leads to the job of that so many
   * places behind: when it begins, or with a rate when it ends. Absent: all at first.
   */
  stride: Schema.optionalKey(Schema.Int),
  /**
   * Registrations and named users, which may be the same people. Absent: it was cancelled before
   * its start.
   */
  people: Schema.optionalKey(Schema.Int),
  /** Bucket revisions that contain everything appended before the broadcast. */
  floor: MinimumRevisions,
  /** As in jobs. */
  since: Schema.optionalKey(Schema.Int),
  acceptedAt: Schema.Int,
  expiresAt: Schema.Int,
  /** The share of failed pushes that pauses the broadcast. Absent: none does. */
  pauseShare: Schema.optionalKey(Schema.Number),
  at: Schema.Int
})
export type Plan = typeof Plan.Type

/** Results of some pushes of one shard, or of one retried push. */
export const Outcome = Schema.Struct({
  broadcast: Schema.Int,
  /** Change of the shard's number of pushes by this message. */
  pushes: Schema.Int,
  results: Schema.Array(PushResult),
  /** Every push of the shard has a fate. */
  final: Schema.Boolean,
  /** The worker sends no more of the shard: another one may have it at once. */
  released: Schema.optionalKey(Schema.Literal(true)),
  /**
   * How many of the named users in the shard had no subscription: in its first outcome. Absent: the
   * broadcast names no users.
   */
  withoutSubscription: Schema.optionalKey(Schema.Int),
  /** The run of the first attempts at these pushes. Absent: 0. */
  run: Schema.optionalKey(Schema.Int),
  at: Schema.Int
})
export type Outcome = typeof Outcome.Type

/** The value of `<channel>.pushes` in the bucket `channels`. */
export interface ChannelPushes {
  readonly v: 1
  readonly seq: number
  /** As in `ChannelRegistrations`: earlier broadcasts do not count. */
  readonly since: number
  /** Pushes of this channel that a push service accepted. */
  readonly pushes: number
  /** When the progress of a broadcast that counts changed last: its final counts have this time. */
  readonly lastModified: number
}

/** The pushes of a channel that began at `since`. */
export const emptyPushes = (since: number): ChannelPushes => ({
  v: 1,
  seq: 0,
  since,
  pushes: 0,
  lastModified: 0
})

/** The pushes of a channel that began at `since`: those of an earlier begin are forgotten. */
export const pushesSince = (pushes: ChannelPushes | undefined, since: number): ChannelPushes =>
  pushes?.since === since ? pushes : emptyPushes(since)

/** The pushes that outcomes of one broadcast add to its channel. */
export interface Delivered {
  /** Sequence of the start of the broadcast in LOG. */
  readonly since: number
  /** Sequence in WORK of the last of the outcomes. */
  readonly seq: number
  readonly delivered: number
  /** When the progress of the broadcast changed last. */
  readonly at: number
}

/** Of a broadcast: its progress has these members. */
interface Counted {
  readonly broadcast: number
  readonly since?: number
  readonly lastModified: number
}

/** The final counts of a broadcast: its progress has these members. */
export interface FinalCounts extends Counted {
  readonly delivered: number
  readonly seq: number
  readonly shards: number
}

/** Of the outcome stored at `seq`. `counted`: the progress with this outcome. */
export const deliveredOf = (
  { at, results }: Outcome,
  counted: Counted,
  seq: number
): Delivered => ({
  since: sinceOf(counted),
  seq,
  delivered: results.filter(({ fate }) => fate === "delivered").length,
  at: Math.max(at, counted.lastModified)
})

/** Of all outcomes of a broadcast, by its final counts. */
const deliveredInAll = (counts: FinalCounts): Delivered => ({
  since: sinceOf(counts),
  seq: counts.seq,
  delivered: counts.delivered,
  at: counts.lastModified
})

export const evolvePushes = (pushes: ChannelPushes, delivered: Delivered): ChannelPushes =>
  delivered.seq <= pushes.seq ? pushes : addPushes(pushes, delivered)

/** As `evolvePushes`, of outcomes that are not counted yet, whatever was counted since. */
export const addPushes = (
  pushes: ChannelPushes,
  { at, delivered, seq, since }: Delivered
): ChannelPushes => {
  if (since < pushes.since) return pushes
  return {
    v: 1,
    seq: Math.max(pushes.seq, seq),
    since: pushes.since,
    pushes: pushes.pushes + delivered,
    lastModified: Math.max(pushes.lastModified, at)
  }
}

/**
 * Whether final counts are a term of the pushes of a channel that began at `since`. A broadcast
 * without shards has no outcomes, and the bucket counts outcomes only.
 */
export const isCounted = (counts: FinalCounts, since: number): boolean =>
  counts.shards > 0 && sinceOf(counts) >= since

/**
 * The pushes of a channel, since it began at `since`, by all final counts that LOG stored up to the
 * sequence `upTo`. These may be gone, or not yet: whoever adds up pushes takes the sum in their
 * place. The other members are those of `ChannelPushes`.
 */
export const ChannelSummed = Schema.Struct({
  since: Schema.Int,
  upTo: Schema.Int,
  pushes: Schema.Int,
  seq: Schema.Int,
  lastModified: Schema.Int
})
export type ChannelSummed = typeof ChannelSummed.Type

/** The sum of a channel that began at `since`: that of an earlier begin is forgotten. */
export const sumSince = (sum: ChannelSummed | undefined, since: number): ChannelSummed =>
  sum?.since === since ? sum : { since, upTo: since, pushes: 0, seq: 0, lastModified: 0 }

/**
 * A sum with the next final counts of its channel, which LOG has at the sequence `upTo`. Undefined:
 * the message there is malformed.
 */
export const evolveSum = (
  sum: ChannelSummed,
  counts: FinalCounts | undefined,
  upTo: number
): ChannelSummed => {
  if (counts === undefined || !isCounted(counts, sum.since)) return { ...sum, upTo }
  const { v: _, ...pushes } = addPushes({ v: 1, ...sum }, deliveredInAll(counts))
  return { ...pushes, upTo }
}

/** Final counts as LOG has them at the sequence `seq`. */
interface StoredCounts {
  readonly seq: number
  readonly counts: FinalCounts
}

/** Pushes with those of final counts, unless the sum of their channel has these. */
export const withFinal = (
  pushes: ChannelPushes,
  sum: ChannelSummed | undefined,
  { counts, seq }: StoredCounts
): ChannelPushes => {
  const { since } = pushes
  const isSummed = sum?.since === since && seq <= sum.upTo
  return isSummed || !isCounted(counts, since) ? pushes : addPushes(pushes, deliveredInAll(counts))
}

/** Pushes with those of the sum of their channel, unless it has begun anew since. */
export const withSum = (pushes: ChannelPushes, sum: ChannelSummed): ChannelPushes => {
  const { lastModified: at, pushes: delivered, seq, since } = sum
  return since === pushes.since ? addPushes(pushes, { since, seq, delivered, at }) : pushes
}
