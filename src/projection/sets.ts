// The write-back caches of the buckets that the projector writes, and the order of the writes:
// after a crash at any point, the next term can repair the buckets.
import * as Context from "effect/Context"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Marks } from "#domain/subscription/command.ts"
import type { Forgotten } from "#history/unneeded.ts"
import { Caches } from "#memory/cache-memory.ts"
import type { Revisions, ValueOf } from "#nats/kv/values.ts"
import { makeWriteBackCache, type WriteBackCache } from "#nats/kv/write-back-cache.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { BucketName, EntryKey, EntryKind } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { Step } from "./step.ts"

/** Channels that a service has in memory to forget. A look finds those beyond when it has fewer. */
export const UnusedMax: Context.Reference<number> = Context.Reference<number>(
  "bellcast/projection/UnusedMax",
  { defaultValue: () => 20_000 }
)

/** Messages of drafts that wait for their deletion. A look finds those beyond an hour later. */
export const deletionsMax = 20_000

/** A message of LOG that nobody needs once the checkpoint has the message `after`. */
export interface Superseded {
  readonly seq: number
  readonly after: number
}

/** Erasures that wait to be completed. A look finds those beyond an hour later. */
const erasuresMax = 20_000

/** The erasure of a user, at the sequence `command`. */
export interface Erasure {
  readonly user: UserToken
  readonly command: number
  readonly by: string | undefined
  /** LOG has the fact that it is done: this looks for what came back. */
  readonly isDone: boolean
}

type Cache<K extends EntryKind> = WriteBackCache<EntryKey<K>, ValueOf<EntryKey<K>>>

/** A subscription that is another user's, until `subscription.moved` is stored. */
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
  /** The indexes of drafts. */
  readonly drafts: Cache<"drafts">
  /** Messages of drafts that are over, in the order in which that was said. */
  readonly superseded: Array<Superseded>
  /** Sequences of messages of LOG that are deleted now. */
  readonly deletions: Queue.Queue<number>
  /** There are more, or some could not be deleted. */
  areMoreDeletions: boolean
  /** Drafts, by id, of which LOG has nothing. */
  readonly lostDrafts: Map<string, { readonly user: UserToken; readonly seq: number }>
  /** Old tombstones that lists are to lose: see trim.ts. */
  readonly forgotten: Array<Forgotten & { readonly done: Deferred.Deferred<void> }>
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
  /** `unused` takes no more than this many. */
  readonly unusedMax: number
  /** There are more, which `unused` had no room for. */
  areMoreUnused: boolean
  /** Sequences of puts that an earlier term rejected, by a fact in LOG, which decided with more. */
  readonly refused: Set<number>
  /** Sequences of puts that were decided before their user was erased, and stored after it. */
  readonly late: Set<number>
  /** Lists that an erasure emptied: of this part, or of all that a rebuild has read. */
  readonly emptied: Set<EntryKey<"subscriptions">>
  /**
   * By sequence of a command: what LOG says was another user's when it was folded. Empty in a
   * service: an erasure waits for the checkpoint, so no term folds a command again once the put of
   * the other user is gone.
   */
  readonly marks: ReadonlyMap<number, Marks>
  /** By sequence of an erasure: the hashes of all endpoints that its user ever had. */
  readonly endpoints: Map<number, ReadonlyArray<string>>
  /** Erasures that are to be completed. */
  readonly erasures: Queue.Queue<Erasure>
  /** There are more, or some could not be completed. */
  areMoreErasures: boolean
  /** Registrations of erased users, which ended, that are to be forgotten now. */
  readonly erased: Set<EntryKey<"registration">>
  /** The checkpoint at which this term begins. */
  readonly from: number
  /** The last checkpoint: no later term applies messages up to it again. */
  saved: number
  /** Sequence of the last message of LOG when this term began: no term applied a later one. */
  readonly foldedUpTo: number
  readonly log: EventLog["Service"]
  /**
   * Whether the buckets are those of a service. A rebuild has its own in a file and nothing to
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
  marks?: ReadonlyMap<number, Marks>
) {
  const isLive = marks === undefined
  const share = (yield* Caches).share("projector")
  const sets: Sets = {
    lists: yield* makeWriteBackCache<EntryKey<"subscriptions">>("subscriptions", share),
    registrations: yield* makeWriteBackCache<EntryKey<"registration">>("registrations", share),
    channels: yield* makeWriteBackCache<EntryKey<"channelRegistrations">>("channels", share),
    begins: yield* makeWriteBackCache<EntryKey<"channelBegin">>("channels", share),
    publishers: yield* makeWriteBackCache<EntryKey<"publishers">>("permissions", share),
    tokens: yield* makeWriteBackCache<EntryKey<"token">>("permissions", share),
    drafts: yield* makeWriteBackCache<EntryKey<"drafts">>("drafts", share),
    superseded: [],
    deletions: yield* Queue.dropping<number>(deletionsMax),
    areMoreDeletions: false,
    lostDrafts: new Map(),
    forgotten: [],
    owners: yield* makeWriteBackCache<EntryKey<"endpointOwners">>("subscriptions", share),
    moves: new Set(),
    standIns: new Map(),
    counts: yield* makeWriteBackCache<EntryKey<"registrationCounts">>("registrations", share),
    blocked: new Map(),
    unused: new Set(),
    unusedMax: isLive ? yield* UnusedMax : Number.POSITIVE_INFINITY,
    areMoreUnused: false,
    refused: new Set(),
    late: new Set(),
    emptied: new Set(),
    marks: marks ?? new Map(),
    endpoints: new Map(),
    erasures: yield* Queue.dropping<Erasure>(erasuresMax),
    areMoreErasures: false,
    erased: new Set(),
    from,
    saved: from,
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
  "drafts",
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
  yield* each(sets, what, [
    "lists",
    "owners",
    "registrations",
    "publishers",
    "tokens",
    "drafts",
    "begins"
  ])
  yield* each(sets, what, ["channels", "counts"])
  sets.refused.clear()
  sets.late.clear()
  if (sets.isLive) sets.emptied.clear()
  sets.endpoints.clear()
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

/** Notes a channel that may have nobody registered. */
export const noteUnused = (sets: Sets, channel: ChannelToken): void => {
  const { unused, unusedMax } = sets
  if (unused.size < unusedMax) unused.add(channel)
  else if (!unused.has(channel)) sets.areMoreUnused = true
}

export const floorOf = ({ lists, registrations }: Sets) => ({
  subscriptions: lists.revision(),
  registrations: registrations.revision()
})
