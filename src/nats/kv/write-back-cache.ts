// A follower's write-back cache of a bucket: entries are read once, changed in memory and written
// back, fenced by their revision. What the bucket has no room for stays here until it has.
import { Effect } from "effect"
import type { BucketName } from "#streams/buckets.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { Buckets } from "./bucket.ts"

/** Entries of one set; the oldest are forgotten beyond this, and read again when needed. */
const entriesMax = 20_000
/** Of what waits for room: entries, and bytes of JSON. Beyond either the follower must stop. */
const unstoredMax = 20_000
const unstoredBytesMax = 64 * 1024 ** 2
/** Counted for each entry beside its JSON: the key, its places in two maps. */
const entryBytes = 200
/** Reads at once. Values have up to 1 MiB each, and nobody knows their size before. */
const readConcurrency = 32
/** All that a follower handles at once, so that its writes are stored together. */
const writeConcurrency = 256
/** Entries tried again together; none of them stored means that there is still no room. */
const retriedAtOnce = 64
/** The longest that values are made into JSON before others have a turn. */
const turnMillis = 10

/**
 * What several working sets may keep together, in bytes of JSON (exact for each entry as it was
 * read or last written). V8's heap takes three times that or more, by what the JSON is made of.
 */
export interface Memory {
  readonly bytesMax: number
  bytes: number
  sets: number
}

export const makeMemory = (bytesMax: number): Memory => ({ bytesMax, bytes: 0, sets: 0 })

export interface WriteBackCache<V> {
  readonly bucket: BucketName
  /** Reads what is not in memory yet. Returns how many bytes of JSON that were. */
  readonly load: (keys: Iterable<string>) => Effect.Effect<number, NatsUnavailable>
  /**
   * Takes for granted that the bucket has no such key, instead of reading it. Where that is wrong,
   * the flush fails.
   */
  readonly loadAbsent: (key: string) => void
  /** The value of a loaded key. */
  readonly get: (key: string) => V | undefined
  /** `seq` is the sequence of the message that changes the value. */
  readonly set: (key: string, value: V, seq: number) => void
  /** The key is not written until it is released as often as it was held. */
  readonly hold: (key: string) => void
  readonly release: (key: string) => void
  /** The bucket needs the loaded key no more; the next flush removes it where it is stored. */
  readonly remove: (key: string) => void
  /** How many keys the next flush writes. */
  readonly changes: () => number
  /**
   * Writes what was set since. What the bucket has no room for stays in memory and is no failure.
   * Another writer's change is one: this follower is not the only one any more.
   */
  readonly flush: Effect.Effect<void, NatsUnavailable>
  /** Writes what there was no room for, as far as there is room now. */
  readonly retry: Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message whose change of the key, or any, is not stored; or Infinity. */
  readonly unstoredSince: (key?: string) => number
  /** The highest revision known of the bucket. */
  readonly revision: () => number
}

interface Entry<V> {
  value: V | undefined
  revision: number
  bytes: number
}

/** The working set of a bucket, within the memory that it shares with others. */
export const makeWriteBackCache = Effect.fnUntraced(function* <V>(
  bucket: BucketName,
  memory: Memory
) {
  const buckets = yield* Buckets
  let highest = yield* buckets.revision(bucket)
  memory.sets += 1
  const entries = new Map<string, Entry<V>>()
  /** Bytes of all entries. */
  let bytes = 0
  /** To be written with the next flush. */
  const changed = new Set<string>()
  /** The first message whose change of a key is not stored. */
  const unstored = new Map<string, number>()
  const holds = new Map<string, number>()

  const weigh = (entry: Entry<V>, textBytes: number) => {
    const weight = textBytes + entryBytes
    bytes += weight - entry.bytes
    memory.bytes += weight - entry.bytes
    entry.bytes = weight
  }

  const loadOne = (key: string) =>
    Effect.map(buckets.get(bucket, key), (found) => {
      // Read twice at once.
      if (entries.has(key)) return 0
      const entry: Entry<V> = {
        value: found?.value as V | undefined,
        revision: found?.revision ?? 0,
        bytes: 0
      }
      entries.set(key, entry)
      weigh(entry, found?.bytes ?? 0)
      return entry.bytes
    })

  const loadAbsent = (key: string) => {
    if (entries.has(key)) return
    const entry: Entry<V> = { value: undefined, revision: 0, bytes: 0 }
    entries.set(key, entry)
    weigh(entry, 0)
  }

  const load = (keys: Iterable<string>) =>
    Effect.forEach(
      [...new Set(keys)].filter((key) => !entries.has(key)),
      loadOne,
      { concurrency: readConcurrency }
    ).pipe(Effect.map((sizes) => sizes.reduce((sum, size) => sum + size, 0)))

  const written = (key: string, text: string, revision: number) => {
    const entry = entries.get(key)!
    entry.revision = revision
    weigh(entry, text.length)
    highest = Math.max(highest, revision)
    unstored.delete(key)
  }

  const drop = (key: string, entry: Entry<V>) => {
    entries.delete(key)
    bytes -= entry.bytes
    memory.bytes -= entry.bytes
    changed.delete(key)
    unstored.delete(key)
  }

  const removeStored = (key: string) =>
    Effect.suspend(() => {
      const entry = entries.get(key)!
      return buckets.remove(bucket, entry.revision).pipe(Effect.map(() => drop(key, entry)))
    })

  const writeText = (key: string, text: string) =>
    buckets.putText(bucket, key, text, entries.get(key)!.revision).pipe(
      Effect.map((revision) => written(key, text, revision)),
      Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
      Effect.mapError((error) =>
        error._tag === "NatsUnavailable" ? error : unavailable(`write ${bucket}`)(error)
      )
    )

  const write = ([key, text]: readonly [string, string | undefined]) =>
    text === undefined ? removeStored(key) : writeText(key, text)

  /** The JSON of these keys, made in turns: others in the process must not wait for all of it. */
  const textsOf = Effect.fnUntraced(function* (keys: ReadonlyArray<string>) {
    const texts: Array<readonly [string, string | undefined]> = []
    let began = performance.now()
    for (const key of keys) {
      texts.push([key, JSON.stringify(entries.get(key)!.value)])
      if (performance.now() - began < turnMillis) continue
      yield* Effect.sleep(0)
      began = performance.now()
    }
    return texts
  })

  const forget = () => {
    for (const [key, entry] of entries) {
      const isOver = memory.bytes > memory.bytesMax && bytes > memory.bytesMax / memory.sets
      if (entries.size <= entriesMax && !isOver) break
      if (unstored.has(key)) continue
      drop(key, entry)
    }
  }

  const checkUnstored = Effect.suspend(() => {
    if (unstored.size === 0) return Effect.void
    let waiting = 0
    for (const key of unstored.keys()) waiting += entries.get(key)!.bytes
    if (unstored.size <= unstoredMax && waiting <= unstoredBytesMax) return Effect.void
    return unavailable(`write ${bucket}`)(
      new Error(`${unstored.size} entries (${waiting} bytes) wait for room`)
    )
  })

  const flush = Effect.gen(function* () {
    const keys = [...changed].filter((key) => !holds.has(key))
    for (const key of keys) changed.delete(key)
    yield* Effect.forEach(yield* textsOf(keys), write, {
      concurrency: writeConcurrency,
      discard: true
    })
    forget()
    yield* checkUnstored
  })

  const retry = Effect.gen(function* () {
    const keys = [...unstored.keys()].filter((key) => !holds.has(key))
    for (let i = 0; i < keys.length; i += retriedAtOnce) {
      const some = keys.slice(i, i + retriedAtOnce)
      for (const key of some) changed.add(key)
      yield* flush
      const refused = some.filter((key) => unstored.has(key))
      // To the end: next time others come first.
      for (const key of refused) {
        const since = unstored.get(key)!
        unstored.delete(key)
        unstored.set(key, since)
      }
      if (refused.length === some.length) break
    }
  })

  const unstoredSince = (key?: string): number => {
    if (key !== undefined) return unstored.get(key) ?? Number.POSITIVE_INFINITY
    let first = Number.POSITIVE_INFINITY
    for (const since of unstored.values()) first = Math.min(first, since)
    return first
  }

  const set: WriteBackCache<V> = {
    bucket,
    load,
    loadAbsent,
    flush,
    retry,
    unstoredSince,
    get: (key) => entries.get(key)?.value,
    set: (key, value, seq) => {
      const entry = entries.get(key)!
      if (entry.value === value) return
      entry.value = value
      changed.add(key)
      if (!unstored.has(key)) unstored.set(key, seq)
    },
    hold: (key) => void holds.set(key, (holds.get(key) ?? 0) + 1),
    release: (key) => {
      const count = (holds.get(key) ?? 0) - 1
      if (count > 0) holds.set(key, count)
      else holds.delete(key)
      if (count === 0 && unstored.has(key)) changed.add(key)
    },
    remove: (key) => {
      const entry = entries.get(key)!
      entry.value = undefined
      changed.add(key)
      if (entry.revision === 0) drop(key, entry)
    },
    changes: () => changed.size,
    revision: () => highest
  }
  return set
})
