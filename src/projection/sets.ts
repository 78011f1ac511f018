// The write-back caches of the buckets that the projector writes, and the order of the writes:
// after a crash at any point, the next run can repair the buckets.
import { Effect } from "effect"
import type { Facts } from "#nats/follower/facts.ts"
import { makeMemory } from "#nats/kv/cached-entries.ts"
import type { ValueOf } from "#nats/kv/values.ts"
import { makeWriteBackCache, type WriteBackCache } from "#nats/kv/write-back-cache.ts"
import type { Stored } from "#nats/stream/stored.ts"
import type { EntryKey, EntryKind } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Step } from "./step.ts"

/** Bytes of JSON in all caches together. */
const memoryBytesMax = 32 * 1024 ** 2
/** Bytes that the steps of one part may read. A list has up to 1 MiB. */
const partBytesMax = 2 * 1024 ** 2
/** Steps that read at once: at most 32 MiB of lists. */
const loadConcurrency = 32

type Cache<K extends EntryKind> = WriteBackCache<EntryKey<K>, ValueOf<EntryKey<K>>>

export interface Sets {
  readonly lists: Cache<"subscriptions">
  readonly registrations: Cache<"registration">
  readonly channels: Cache<"channelRegistrations">
  readonly begins: Cache<"channelBegin">
  readonly counts: Cache<"registrationCounts">
  readonly publishers: Cache<"publishers">
  readonly tokens: Cache<"token">
  /** Registrations that must not be written before the counts that they change. */
  readonly held: Map<EntryKey<"registration">, Counted>
  /** Channels that may have nobody registered: see forget.ts. */
  readonly unused: Set<ChannelToken>
  /** Sequences of puts that an earlier run rejected, by a fact in LOG. */
  readonly refused: Set<number>
  /** Sequence of the last message of LOG when this run began: no run applied a later one. */
  readonly foldedUpTo: number
}

/** The keys of the counts of a registration. */
type Counted = Pick<
  Extract<Step, { readonly kind: "registration" }>,
  "begin" | "channel" | "counts"
>

export const makeSets = Effect.fnUntraced(function* (foldedUpTo: number) {
  const memory = makeMemory(memoryBytesMax)
  const sets: Sets = {
    lists: yield* makeWriteBackCache<EntryKey<"subscriptions">>("subscriptions", memory),
    registrations: yield* makeWriteBackCache<EntryKey<"registration">>("registrations", memory),
    channels: yield* makeWriteBackCache<EntryKey<"channelRegistrations">>("channels", memory),
    begins: yield* makeWriteBackCache<EntryKey<"channelBegin">>("channels", memory),
    publishers: yield* makeWriteBackCache<EntryKey<"publishers">>("permissions", memory),
    tokens: yield* makeWriteBackCache<EntryKey<"token">>("permissions", memory),
    counts: yield* makeWriteBackCache<EntryKey<"registrationCounts">>("registrations", memory),
    held: new Map(),
    unused: new Set(),
    refused: new Set(),
    foldedUpTo
  }
  return sets
})

const all = ({ begins, channels, counts, lists, publishers, registrations, tokens }: Sets) => [
  lists,
  registrations,
  begins,
  channels,
  counts,
  publishers,
  tokens
]

/** Skips the read if the message is the first of its subject: the bucket cannot have the key. */
const loadOwn = <K extends string, V>(
  set: WriteBackCache<K, V>,
  { foldedUpTo }: Sets,
  key: K,
  { header, seq }: Stored
) => {
  const isFirst =
    seq > foldedUpTo &&
    header("Nats-Expected-Last-Subject-Sequence") === "0" &&
    // With this header, the expected sequence is that of another subject.
    header("Nats-Expected-Last-Subject-Sequence-Subject") === undefined
  if (!isFirst) return set.load([key])
  set.loadAbsent(key)
  return Effect.succeed(0)
}

/**
 * Loads the registration and its counts. If an earlier run stored the counts and not the
 * registration, loads also whether that run rejected the put.
 */
const loadRegistration = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  { begin, channel, command, counts, key, stored }: Extract<Step, { kind: "registration" }>
) {
  const { seq } = stored
  const sizes = yield* Effect.all(
    [
      loadOwn(sets.registrations, sets, key, stored),
      sets.channels.load([channel]),
      sets.begins.load([begin]),
      sets.counts.load([counts])
    ],
    { concurrency: "unbounded" }
  )
  const isCounted = (sets.counts.get(counts)?.seq ?? 0) >= seq
  const isLimited = command.type === "registration.put/1" && command.registrationsMax !== undefined
  if (isCounted && isLimited && (sets.registrations.get(key)?.seq ?? 0) < seq) {
    if (yield* facts.isRecorded(subjects.rejected(seq))) sets.refused.add(seq)
  }
  return sizes.reduce((sum, size) => sum + size, 0)
})

const loadStep = (sets: Sets, facts: Facts, step: Step) => {
  if (step.kind === "list") return loadOwn(sets.lists, sets, step.key, step.stored)
  if (step.kind === "publishers") return sets.publishers.load([step.key])
  if (step.kind === "token") return sets.tokens.load([step.key])
  if (step.kind === "registration") return loadRegistration(sets, facts, step)
  return Effect.succeed(0)
}

/**
 * Loads the values of as many steps as one part may read, from the first on. Returns the number of
 * these steps.
 */
export const load = Effect.fnUntraced(function* (
  sets: Sets,
  facts: Facts,
  steps: ReadonlyArray<Step>
) {
  let read = 0
  let loaded = steps.length
  const seen = new Set<string>()
  const one = (step: Step, n: number) => {
    const key = "key" in step ? `${step.kind} ${step.key}` : ""
    if (seen.has(key)) return Effect.void
    if (read > partBytesMax) {
      loaded = Math.min(loaded, n)
      return Effect.void
    }
    seen.add(key)
    return Effect.map(loadStep(sets, facts, step), (bytes) => {
      read += bytes
    })
  }
  yield* Effect.forEach(steps, one, { concurrency: loadConcurrency, discard: true })
  return loaded
})

/** Sequence of the first change that the stored counts of a registration lack, or Infinity. */
export const countedSince = ({ begins, channels, counts }: Sets, counted: Counted): number =>
  Math.min(
    begins.unstoredSince(counted.begin),
    channels.unstoredSince(counted.channel),
    counts.unstoredSince(counted.counts)
  )

const each = (
  sets: Sets,
  what: "flush" | "retry",
  which: ReadonlyArray<
    "lists" | "registrations" | "publishers" | "tokens" | "begins" | "channels" | "counts"
  >
) => Effect.forEach(which, (name) => sets[name][what], { concurrency: "unbounded", discard: true })

/** Allows the write of registrations whose counts are stored. Returns whether there are any. */
const release = (sets: Sets): boolean => {
  let isAny = false
  for (const [key, counted] of sets.held) {
    if (countedSince(sets, counted) !== Number.POSITIVE_INFINITY) continue
    sets.held.delete(key)
    sets.registrations.release(key)
    isAny = true
  }
  return isAny
}

/**
 * Writes the changes (`flush`), or those without room (`retry`). Registrations go before counts,
 * which are repaired from the last change of a registration: see `cut` in step.ts. The begin of a
 * channel goes before its count: without its begin, a count is not believed.
 */
export const write = Effect.fnUntraced(function* (sets: Sets, what: "flush" | "retry") {
  yield* each(sets, what, ["lists", "registrations", "publishers", "tokens", "begins"])
  yield* each(sets, what, ["channels", "counts"])
  sets.refused.clear()
  if (release(sets)) yield* sets.registrations.flush
})

/** Sequence of the first message with a change that is not stored, or Infinity. */
export const unstoredSince = (sets: Sets): number =>
  Math.min(...all(sets).map((set) => set.unstoredSince()))

/** The buckets that have no room for some change. */
export const shortOf = (sets: Sets) =>
  all(sets).flatMap((set) => (set.unstoredSince() === Number.POSITIVE_INFINITY ? [] : [set.bucket]))

/** Revisions of the buckets beside that of the checkpoint. */
export const revisionsOf = ({
  begins,
  channels,
  counts,
  publishers,
  registrations,
  tokens
}: Sets) => ({
  registrations: Math.max(registrations.revision(), counts.revision()),
  channels: Math.max(begins.revision(), channels.revision()),
  permissions: Math.max(publishers.revision(), tokens.revision())
})

export const floorOf = ({ lists, registrations }: Sets) => ({
  subscriptions: lists.revision(),
  registrations: registrations.revision()
})
