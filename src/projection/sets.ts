// The write-back caches of the buckets that the projector writes, and the order of the writes:
// after a crash at any point, the next term can repair the buckets.
import * as Effect from "effect/Effect"
import { Caches } from "#memory/cache-memory.ts"
import type { Revisions, ValueOf } from "#nats/kv/values.ts"
import { makeWriteBackCache, type WriteBackCache } from "#nats/kv/write-back-cache.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { BucketName, EntryKey, EntryKind } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { Step } from "./step.ts"

/**
 * Channels, and registrations, that a service has in memory to forget. Beyond each, the next look
 * finds them.
 */
export const forgetMax = 20_000

type Cache<K extends EntryKind> = WriteBackCache<EntryKey<K>, ValueOf<EntryKey<K>>>

/** A subscription that is another user's, until `subscription.moved/1` is stored. */
export interface Move {
  /** The earlier owner. */
  readonly user: UserToken
  readonly id: string
  /** Sequence of the put of the new owner. */
  readonly seq: number
  /** The page, which is not written before: it names the new owner only. */
  readonly page: EntryKey<"endpointOwners">
}

export interface Sets {
  readonly lists: Cache<"subscriptions">
  readonly registrations: Cache<"registration">
  readonly channels: Cache<"channelRegistrations">
  readonly begins: Cache<"channelBegin">
  readonly counts: Cache<"registrationCounts">
  readonly publishers: Cache<"publishers">
  readonly tokens: Cache<"token">
  /** The owners of endpoints. */
  readonly owners: Cache<"endpointOwners">
  /** Subscriptions that another user took, and that the earlier owner's list is to lose. */
  readonly moves: Set<Move>
  /**
   * Stand-ins whose registrations end, and the sequence at which the last of those began that this
   * term has ended.
   */
  readonly standIns: Map<UserToken, number>
  /** Registrations that must not be written before the counts that they change. */
  readonly blocked: Map<EntryKey<"registration">, Counted>
  /** Channels that may have nobody registered: see forget.ts. */
  readonly unused: Set<ChannelToken>
  /** Registrations that ended, and when their entries were written, by the monotonic clock. */
  readonly ended: Map<EntryKey<"registration">, number>
  /** `unused` and `ended` take no more than this many each. */
  readonly forgetMax: number
  /** Sequences of puts that an earlier term rejected, by a fact in LOG, which decided with more. */
  readonly refused: Set<number>
  /** The checkpoint at which this term begins. */
  readonly from: number
  /** Sequence of the last message of LOG when this term began: no term applied a later one. */
  readonly foldedUpTo: number
  readonly log: EventLog["Service"]
  /**
   * Whether the buckets are those of a service. A rebuild has its own in memory and nothing to
   * repair: it completes moves when it has read all of LOG, which may complete them itself.
   */
  readonly isLive: boolean
}

/** The keys of the counts of a registration. */
type Counted = Pick<
  Extract<Step, { readonly kind: "registration" }>,
  "begin" | "channel" | "counts"
>

export const makeSets = Effect.fnUntraced(function* (
  from: number,
  foldedUpTo: number,
  isLive: boolean
) {
  const share = (yield* Caches).share("projector")
  const sets: Sets = {
    lists: yield* makeWriteBackCache<EntryKey<"subscriptions">>("subscriptions", share),
    registrations: yield* makeWriteBackCache<EntryKey<"registration">>("registrations", share),
    channels: yield* makeWriteBackCache<EntryKey<"channelRegistrations">>("channels", share),
    begins: yield* makeWriteBackCache<EntryKey<"channelBegin">>("channels", share),
    publishers: yield* makeWriteBackCache<EntryKey<"publishers">>("permissions", share),
    tokens: yield* makeWriteBackCache<EntryKey<"token">>("permissions", share),
    owners: yield* makeWriteBackCache<EntryKey<"endpointOwners">>("subscriptions", share),
    moves: new Set(),
    standIns: new Map(),
    counts: yield* makeWriteBackCache<EntryKey<"registrationCounts">>("registrations", share),
    blocked: new Map(),
    unused: new Set(),
    ended: new Map(),
    forgetMax: isLive ? forgetMax : Number.POSITIVE_INFINITY,
    refused: new Set(),
    from,
    foldedUpTo,
    log: yield* EventLog,
    isLive
  }
  return sets
})

const names = [
  "lists",
  "registrations",
  "begins",
  "channels",
  "counts",
  "publishers",
  "tokens",
  "owners"
] as const satisfies ReadonlyArray<keyof Sets>

const all = (sets: Sets) => names.map((name) => sets[name])

/** Sequence of the first change that the stored counts of a registration lack, or Infinity. */
export const countedSince = ({ begins, channels, counts }: Sets, counted: Counted): number =>
  Math.min(
    begins.unstoredSince(counted.begin),
    channels.unstoredSince(counted.channel),
    counts.unstoredSince(counted.counts)
  )

const each = (sets: Sets, what: "flush" | "retry", which: ReadonlyArray<(typeof names)[number]>) =>
  Effect.forEach(which, (name) => sets[name][what], { concurrency: "unbounded", discard: true })

/** Allows the write of registrations whose counts are stored. Returns whether there are any. */
const unblockCounted = (sets: Sets): boolean => {
  let isAny = false
  for (const [key, counted] of sets.blocked) {
    if (countedSince(sets, counted) !== Number.POSITIVE_INFINITY) continue
    sets.blocked.delete(key)
    sets.registrations.unblock(key)
    isAny = true
  }
  return isAny
}

/**
 * Writes the changes (`flush`), or those without room (`retry`). Registrations go before counts,
 * which are repaired from the last change of a registration: see `cut` in step.ts. The begin of a
 * channel goes before its count: without its begin, a count is not believed. Pages of owners go
 * with the lists: `take` (owners.ts) and `block` (fold.ts) block those that must wait for a list.
 */
export const write = Effect.fnUntraced(function* (sets: Sets, what: "flush" | "retry") {
  yield* each(sets, what, ["lists", "owners", "registrations", "publishers", "tokens", "begins"])
  yield* each(sets, what, ["channels", "counts"])
  sets.refused.clear()
  if (unblockCounted(sets)) yield* sets.registrations.flush
})

/** Sequence of the first message with a change that is not stored, or Infinity. */
export const unstoredSince = (sets: Sets): number =>
  [...sets.moves].reduce(
    (since, { seq }) => Math.min(since, seq),
    Math.min(...all(sets).map((set) => set.unstoredSince()))
  )

/** The buckets that have no room for some change. */
export const shortOf = (sets: Sets) =>
  all(sets).flatMap((set) => (set.unstoredSince() === Number.POSITIVE_INFINITY ? [] : [set.bucket]))

/** Revisions of the buckets beside that of the checkpoint. */
export const revisionsOf = (sets: Sets): Revisions => {
  const revisions: Partial<Record<BucketName, number>> = {}
  for (const { bucket, revision } of all(sets))
    if (bucket !== "subscriptions") revisions[bucket] = Math.max(revisions[bucket] ?? 0, revision())
  return revisions
}

export const floorOf = ({ lists, registrations }: Sets) => ({
  subscriptions: lists.revision(),
  registrations: registrations.revision()
})
