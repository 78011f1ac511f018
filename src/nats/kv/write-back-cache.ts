// A follower's write-back cache of a bucket. Entries are read once, changed in memory and written
// back with their expected revision. Changes that the bucket has no room for stay in memory.
import * as Effect from "effect/Effect"
import { mapInTurns } from "#clock/map-in-turns.ts"
import { type JoinedEffects, makeSingleFlight } from "#clock/single-flight.ts"
import type { Share } from "#memory/cache-memory.ts"
import type { BucketName } from "#streams/buckets.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { Buckets } from "./bucket.ts"
import { CachedEntries } from "./cached-entries.ts"
import { readParts } from "./entries.ts"
import type { BucketOf, Entry, ValueOf } from "./values.ts"

/** All messages of one batch of a follower, so that the server stores their changes together. */
const writeConcurrency = 256
/** Changes without room that are written together. If none is stored, there is still no room. */
const retriedAtOnce = 64

/** Reads at once. A value has up to 1 MiB, and its size is unknown before the read. */
const readConcurrency = 32
/** Entries without room, and bytes of their JSON. Beyond either the follower stops. */
const unstoredMax = 20_000
const unstoredBytesMax = 64 * 1024 ** 2

export interface WriteBackCache<K extends string, V> {
  readonly bucket: BucketName
  /** Reads the keys that are not in memory. Returns how many bytes of JSON that were. */
  readonly load: (keys: Iterable<K>) => Effect.Effect<number, NatsUnavailable>
  /**
   * Like `load`, with one request, which any replica responds to. Only for a cache that removes
   * nothing and is the only writer of its keys: a replica may still have a removed entry.
   */
  readonly loadTogether: (keys: Iterable<K>) => Effect.Effect<number, NatsUnavailable>
  /** Assumes that the bucket has no such key, without reading. If it has, the flush fails. */
  readonly loadAbsent: (key: K) => void
  /** Gives a value to a loaded key that the bucket lacks. The next flush does not write it. */
  readonly assume: (key: K, value: V) => void
  /** The value of a loaded key. */
  readonly get: (key: K) => V | undefined
  /** `seq` is the sequence of the message that changes the value. */
  readonly set: (key: K, value: V, seq: number) => void
  /**
   * Like `set`, but the flush removes the stored entry before it writes the new one: of a key that
   * is removed for good later, see `isBegun` in domain/registration.ts.
   */
  readonly replace: (key: K, value: V, seq: number) => void
  /** The key is not written until `unblock` is called as often as `block`. */
  readonly block: (key: K) => void
  readonly unblock: (key: K) => void
  /** The next flush removes the key from the bucket, if it is loaded. */
  readonly remove: (key: K) => void
  /** Number of keys that the next flush writes. */
  readonly changes: () => number
  /**
   * Writes all changes. A change without room stays in memory and is no failure. A change of
   * another writer is one: then another process runs this follower.
   */
  readonly flush: Effect.Effect<void, NatsUnavailable>
  /** Writes the changes without room, as far as there is room now. */
  readonly retry: Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message whose change (of the key, or any) is not stored, or Infinity. */
  readonly unstoredSince: (key?: K) => number
  /** The highest known revision of the bucket. */
  readonly revision: () => number
}

interface State<V> {
  readonly bucket: BucketName
  readonly buckets: Buckets["Service"]
  readonly entries: CachedEntries<V>
  /** By key: the reads that are under way. */
  readonly reads: JoinedEffects<string, number, NatsUnavailable>
  /** Revision of the bucket when the cache was made. */
  readonly from: number
  /** The keys that the next flush writes. */
  readonly changed: Set<string>
  /** By key: the first message whose change is not stored. */
  readonly unstored: Map<string, number>
  /** By key: how often its write is blocked. */
  readonly blocked: Map<string, number>
  /** Keys whose stored entry is removed before the new one is written. */
  readonly replaced: Set<string>
  revision: number
}

/** Makes the cache of a bucket, within a share of memory that several caches divide. */
export const makeWriteBackCache = Effect.fnUntraced(function* <
  K extends string,
  V extends ValueOf<K> = ValueOf<K>
>(bucket: BucketOf<K>, share: Share) {
  const buckets = yield* Buckets
  const changed = new Set<string>()
  const unstored = new Map<string, number>()
  const from = yield* buckets.revision(bucket)
  const state: State<V> = {
    bucket,
    buckets,
    entries: new CachedEntries(share, (key) => unstored.has(key) || changed.has(key)),
    reads: yield* makeSingleFlight<string, number, NatsUnavailable>(),
    changed,
    unstored,
    blocked: new Map(),
    replaced: new Set(),
    from,
    revision: from
  }
  const { entries, blocked } = state
  const cache: WriteBackCache<K, V> = {
    bucket,
    load: (keys) => load(state, keys),
    loadTogether: (keys) => loadTogether(state, keys),
    loadAbsent: (key) => {
      entries.begin()
      if (!entries.has(key)) entries.add(key, undefined, 0, 0)
    },
    assume: (key, value) => void Object.assign(entries.loaded(key), { value }),
    flush: flush(state),
    retry: retry(state),
    unstoredSince: (key) => unstoredSince(state, key),
    get: (key) => entries.find(key)?.value,
    set: (key, value, seq) => set(state, key, value, seq),
    replace: (key, value, seq) => {
      if (entries.find(key)?.value !== value) state.replaced.add(key)
      set(state, key, value, seq)
    },
    block: (key) => void blocked.set(key, (blocked.get(key) ?? 0) + 1),
    unblock: (key) => unblock(state, key),
    remove: (key) => remove(state, key),
    changes: () => changed.size,
    revision: () => state.revision
  }
  return cache
})

/** The keys that are not in memory. From now to the next flush no entry is dropped. */
const missingOf = <V>({ entries }: State<V>, keys: Iterable<string>): ReadonlyArray<string> => {
  const wanted = [...new Set(keys)]
  if (wanted.length > 0) entries.begin()
  return wanted.filter((key) => !entries.has(key))
}

/** See `WriteBackCache.load`. */
const load = <V>(state: State<V>, keys: Iterable<string>) =>
  Effect.suspend(() =>
    Effect.map(
      Effect.forEach(missingOf(state, keys), (key) => readOnce(state, key), {
        concurrency: readConcurrency
      }),
      sum
    )
  )

/**
 * See `WriteBackCache.loadTogether`. A replica may lack the last writes for a while. So the read
 * waits only for the revisions that it needs: `from`, the highest of earlier writers, and the
 * highest of an entry that this cache dropped. Entries with later revisions are in memory.
 */
const loadTogether = <V>(state: State<V>, keys: Iterable<string>) =>
  Effect.suspend(() => {
    const { bucket, buckets, entries, from } = state
    const missing = missingOf(state, keys)
    if (missing.length < 2) return load(state, missing)
    const read = readParts(buckets, bucket, missing, Math.max(from, entries.droppedRevision))
    return Effect.map(read, (found) => {
      const byKey = new Map(found.map((entry) => [entry.key, entry]))
      return sum(missing.map((key) => add(entries, key, byKey.get(key))))
    })
  })

/**
 * Reads a key once, as several messages of one batch may change one large value. Returns how many
 * bytes it read: 0 where another read of the key was under way.
 */
const readOnce = <V>({ bucket, buckets, entries, reads }: State<V>, key: string) =>
  Effect.suspend(() => {
    const isUnderWay = reads.callersOf(key) > 0
    const read = Effect.map(buckets.get(bucket, key), (found) => add(entries, key, found))
    return Effect.map(reads.join(key, read), (bytes) => (isUnderWay ? 0 : bytes))
  })

const add = <V>(entries: CachedEntries<V>, key: string, found: Entry | undefined): number => {
  // Another load of the key ended first.
  if (entries.has(key)) return 0
  // Only writers of the same kind of keys write such an entry.
  const value = found?.value as V | undefined
  return entries.add(key, value, found?.revision ?? 0, found?.bytes ?? 0).textBytes
}

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((all, size) => all + size, 0)

const set = <V>({ changed, entries, unstored }: State<V>, key: string, value: V, seq: number) => {
  const entry = entries.loaded(key)
  if (entry.value === value) return
  entry.value = value
  changed.add(key)
  if (!unstored.has(key)) unstored.set(key, seq)
}

const unblock = <V>({ changed, blocked, unstored }: State<V>, key: string) => {
  const count = (blocked.get(key) ?? 0) - 1
  if (count > 0) blocked.set(key, count)
  else blocked.delete(key)
  if (count === 0 && unstored.has(key)) changed.add(key)
}

const drop = <V>({ changed, entries, replaced, unstored }: State<V>, key: string) => {
  entries.drop(key, entries.loaded(key))
  changed.delete(key)
  replaced.delete(key)
  unstored.delete(key)
}

const remove = <V>(state: State<V>, key: string) => {
  // Removed before, and not loaded since.
  if (!state.entries.has(key)) return
  const entry = state.entries.loaded(key)
  entry.value = undefined
  state.changed.add(key)
  if (entry.revision === 0) drop(state, key)
}

const removeStored = <V>(state: State<V>, key: string) =>
  Effect.suspend(() =>
    state.buckets
      .remove(state.bucket, state.entries.loaded(key).revision)
      .pipe(Effect.map(() => drop(state, key)))
  )

const written = <V>(state: State<V>, key: string, revision: number): void => {
  const entry = state.entries.loaded(key)
  entry.revision = revision
  state.revision = Math.max(state.revision, revision)
  state.unstored.delete(key)
}

/** Removes the stored entry of a key that is replaced. */
const makeWay = <V>({ bucket, buckets, entries, replaced }: State<V>, key: string) =>
  Effect.suspend(() => {
    const entry = entries.loaded(key)
    if (!replaced.delete(key) || entry.revision === 0) return Effect.void
    return Effect.map(buckets.remove(bucket, entry.revision), () => {
      entry.revision = 0
    })
  })

const writeText = Effect.fnUntraced(function* <V>(state: State<V>, key: string, text: string) {
  const { bucket, buckets, entries } = state
  yield* makeWay(state, key)
  // Before the write: a change without room counts, too.
  entries.weigh(entries.loaded(key), text.length)
  yield* buckets.putText(bucket, key, text, entries.loaded(key).revision).pipe(
    Effect.map((revision) => written(state, key, revision)),
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
    Effect.catchTag("AppendConflict", (error) => Effect.fail(unavailable(`write ${bucket}`)(error)))
  )
})

const flush = <V>(state: State<V>) =>
  Effect.gen(function* () {
    const { changed, entries, blocked, unstored } = state
    const keys = [...changed].filter((key) => !blocked.has(key))
    for (const key of keys) changed.delete(key)
    // Undefined for a key that is removed, which the type of JSON.stringify does not say.
    const textOf = (key: string): string | undefined => JSON.stringify(entries.loaded(key).value)
    yield* Effect.forEach(
      yield* mapInTurns(keys, (key) => [key, textOf(key)] as const),
      ([key, text]) =>
        text === undefined ? removeStored(state, key) : writeText(state, key, text),
      { concurrency: writeConcurrency, discard: true }
    )
    entries.evict(
      (key) => unstored.has(key),
      (key) => changed.delete(key)
    )
    yield* checkUnstored(state)
  })

const retry = <V>(state: State<V>) =>
  Effect.gen(function* () {
    const { blocked, changed, unstored } = state
    const keys = [...unstored.keys()].filter((key) => !blocked.has(key))
    for (let i = 0; i < keys.length; i += retriedAtOnce) {
      const some = keys.slice(i, i + retriedAtOnce)
      for (const key of some) changed.add(key)
      yield* flush(state)
      const refused = some.filter((key) => unstored.has(key))
      // The next retry begins with other keys.
      for (const key of refused) {
        const since = unstored.get(key)!
        unstored.delete(key)
        unstored.set(key, since)
      }
      if (refused.length === some.length) break
    }
  })

const unstoredSince = <V>({ unstored }: State<V>, key?: string): number =>
  key === undefined
    ? [...unstored.values()].reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
    : (unstored.get(key) ?? Number.POSITIVE_INFINITY)

/** Fails when too many changes wait for room. */
const checkUnstored = <V>({ bucket, entries, unstored }: State<V>) =>
  Effect.suspend(() => {
    if (unstored.size === 0) return Effect.void
    const bytes = [...unstored.keys()].reduce((sum, key) => sum + entries.loaded(key).textBytes, 0)
    if (unstored.size <= unstoredMax && bytes <= unstoredBytesMax) return Effect.void
    return unavailable(`write ${bucket}`)(
      new Error(`${unstored.size} entries (${bytes} bytes) wait for room`)
    )
  })
