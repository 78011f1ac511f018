// Reads entries into a write-back cache, each entry once: several messages of one batch may change
// one large value.
import * as Effect from "effect/Effect"
import type { BucketName } from "#streams/buckets.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import type { Buckets } from "./bucket.ts"
import type { CachedEntries } from "./cached-entries.ts"
import { readParts } from "./read-parts.ts"
import type { Entry } from "./values.ts"

/** Reads at once. A value has up to 1 MiB, and its size is unknown before the read. */
const readConcurrency = 32

/** By key: the reads that are under way. Each returns how many bytes it read. */
export type SharedReads = Map<string, Effect.Effect<number, NatsUnavailable>>

interface Reader<V> {
  readonly bucket: BucketName
  readonly buckets: Buckets["Service"]
  readonly entries: CachedEntries<V>
  readonly reads: SharedReads
  /** Revision of the bucket when the cache was made. */
  readonly from: number
}

/** Waits for a read of the key that is under way, and returns 0; or reads the key. */
const readOnce = Effect.fnUntraced(function* (
  reads: SharedReads,
  key: string,
  read: Effect.Effect<number, NatsUnavailable>
) {
  const running = reads.get(key)
  if (running !== undefined) return yield* Effect.as(running, 0)
  const shared = yield* Effect.cached(read)
  reads.set(key, shared)
  return yield* Effect.ensuring(
    shared,
    Effect.sync(() => reads.delete(key))
  )
})

const add = <V>(entries: CachedEntries<V>, key: string, found: Entry | undefined): number => {
  // Another load of the key ended first.
  if (entries.has(key)) return 0
  // Only writers of the same kind of keys write such an entry.
  const value = found?.value as V | undefined
  return entries.add(key, value, found?.revision ?? 0, found?.bytes ?? 0).textBytes
}

const loadOne = <V>({ bucket, buckets, entries }: Reader<V>, key: string) =>
  Effect.map(buckets.get(bucket, key), (found) => add(entries, key, found))

const sum = (sizes: ReadonlyArray<number>): number => sizes.reduce((all, size) => all + size, 0)

/** The keys that are not in memory. From now to the next flush no entry is dropped. */
const missingOf = <V>({ entries }: Reader<V>, keys: Iterable<string>): ReadonlyArray<string> => {
  const wanted = [...new Set(keys)]
  if (wanted.length > 0) entries.begin()
  return wanted.filter((key) => !entries.has(key))
}

/** See `WriteBackCache.load`. */
export const load = <V>(reader: Reader<V>, keys: Iterable<string>) =>
  Effect.suspend(() =>
    Effect.map(
      Effect.forEach(
        missingOf(reader, keys),
        (key) => readOnce(reader.reads, key, loadOne(reader, key)),
        { concurrency: readConcurrency }
      ),
      sum
    )
  )

/**
 * See `WriteBackCache.loadTogether`. A replica may lack the last writes for a while. So the read
 * waits only for the revisions that it needs: `from`, the highest of earlier writers, and the
 * highest of an entry that this cache dropped. Entries with later revisions are in memory.
 */
export const loadTogether = <V>(reader: Reader<V>, keys: Iterable<string>) =>
  Effect.suspend(() => {
    const { bucket, buckets, entries, from } = reader
    const missing = missingOf(reader, keys)
    if (missing.length < 2) return load(reader, missing)
    const read = readParts(buckets, bucket, missing, Math.max(from, entries.droppedRevision))
    return Effect.map(read, (found) => {
      const byKey = new Map(found.map((entry) => [entry.key, entry]))
      return sum(missing.map((key) => add(entries, key, byKey.get(key))))
    })
  })
