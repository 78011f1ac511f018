// A worker's read cache of a bucket. What is made of its entries is read once, kept as JSON, and
// dropped as soon as the bucket announces a change of one of the keys.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { makeRoom } from "#basics/bounded.ts"
import { MemoryCache, type Share } from "#memory/cache-memory.ts"
import type { BucketName } from "#streams/buckets.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import { Buckets } from "./bucket.ts"

/** A change is announced within a few milliseconds. After this time, read the bucket instead. */
const announcedMillis = 100
const again = Schedule.spaced("250 millis")
/** The last changes of a bucket that are known: about 2 MB. */
const changesMax = 11_000
/** So many stay when there are more. To drop one at a time takes 10 us each (measured). */
const changesKept = 10_000

/** Reads a value for each of these keys or wildcards, all as of `minRevision` or later. */
type ReadValues<K extends string, V> = (
  filters: ReadonlyArray<K>,
  minRevision: number
) => Effect.Effect<ReadonlyMap<string, V>, NatsUnavailable>

export interface ReadCache<K extends string, V> {
  /** The values of these keys or wildcards, all as of revision `minRevision` or later. */
  readonly values: ReadValues<K, V>
  /**
   * Returns a function that tells, without a request, whether a key may have changed after this
   * call: from when the change is announced. It is true for every key where changes were missed, or
   * where this call lies more than 10,000 changes back.
   */
  readonly changesFromNow: () => (key: K) => boolean
}

interface State<K extends string, V> {
  readonly bucket: BucketName
  readonly buckets: Buckets["Service"]
  readonly read: ReadValues<K, V>
  readonly cached: CachedTexts
  /** The revisions of the last changes. */
  readonly changed: Map<string, number>
  /** The highest revision that was dropped from `changed`. */
  droppedUpTo: number
  /** How often the bucket could not be followed any more: changes were missed each time. */
  gaps: number
  /** All changes up to this revision were applied. -1: changes are not followed at the moment. */
  seen: number
  readonly warn: ReturnType<typeof makeRateLimitedLog>
}

/**
 * Makes a cache within a share of memory, of values that JSON can hold. It follows the bucket until
 * the scope closes.
 */
export const makeReadCache = Effect.fnUntraced(function* <K extends string, V>(
  bucket: BucketName,
  share: Share,
  read: ReadValues<K, V>
) {
  const buckets = yield* Buckets
  const cached = new CachedTexts(share)
  const warn = makeRateLimitedLog(`changes of ${bucket} cannot be followed: it is read each time`)
  const state: State<K, V> = {
    ...{ bucket, buckets, read, cached, warn },
    changed: new Map(),
    droppedUpTo: -1,
    gaps: 0,
    seen: -1
  }
  yield* Effect.forkScoped(follow(state))
  const cache: ReadCache<K, V> = {
    values: valuesOf(state),
    changesFromNow: () => {
      const { gaps, seen } = state
      return (key) =>
        seen === -1 ||
        state.gaps !== gaps ||
        state.droppedUpTo > seen ||
        (state.changed.get(key) ?? -1) > seen
    }
  }
  return cache
})

const follow = <K extends string, V>(state: State<K, V>) => {
  const { bucket, buckets, cached, changed } = state
  const run = Effect.gen(function* () {
    state.seen = yield* buckets.revision(bucket)
    // A read that began before the last run failed may have placed a text since.
    cached.clear()
    return yield* buckets.changes(bucket, state.seen, (key, revision) => {
      if (revision <= state.seen) throw new Error("revisions go back: the bucket was made anew")
      cached.invalidate(key)
      changed.delete(key)
      if (changed.size >= changesMax) dropOldest(state)
      changed.set(key, revision)
      state.seen = revision
    })
  })
  return run.pipe(
    Effect.tapCause((cause) => stop(state, cause)),
    Effect.retry(again)
  )
}

const dropOldest = <K extends string, V>(state: State<K, V>): void =>
  makeRoom(state.changed, changesKept, (oldest) => {
    state.droppedUpTo = state.changed.get(oldest)!
  })

const stop = <K extends string, V>(state: State<K, V>, cause: Cause.Cause<unknown>) =>
  Effect.suspend(() => {
    const isSilent = state.seen === -1 || Cause.hasInterruptsOnly(cause)
    state.seen = -1
    state.gaps += 1
    state.changed.clear()
    state.droppedUpTo = -1
    state.cached.clear()
    return isSilent ? Effect.void : state.warn({ err: Cause.squash(cause) })
  })

/** Whether all changes up to a revision were applied, after a short wait for them. */
const isCurrent = <K extends string, V>(state: State<K, V>, minRevision: number) =>
  Effect.suspend(() =>
    state.seen >= minRevision
      ? Effect.succeed(true)
      : Effect.sleep("2 millis").pipe(
          Effect.repeat({ until: () => state.seen >= minRevision }),
          Effect.timeoutOption(announcedMillis),
          Effect.map(({ _tag }) => _tag === "Some")
        )
  )

const valuesOf = <K extends string, V>(state: State<K, V>): ReadValues<K, V> =>
  Effect.fnUntraced(function* (filters, minRevision) {
    const { cached, read } = state
    if (!(yield* isCurrent(state, minRevision))) return yield* read(filters, minRevision)
    const found = new Map<string, V>()
    const missing: Array<K> = []
    for (const filter of filters) {
      const text = cached.find(filter)
      if (text === undefined) missing.push(filter)
      else found.set(filter, JSON.parse(text))
    }
    if (missing.length === 0) return found
    const loading = new Loading()
    cached.begin(missing, loading)
    // Read at `seen` or later: changes up to `seen` are not announced again.
    const values = yield* read(missing, Math.max(minRevision, state.seen)).pipe(
      Effect.onError(() => Effect.sync(() => cached.cancel(missing, loading)))
    )
    for (const [filter, value] of values) {
      found.set(filter, value)
      cached.place(filter, value, loading)
    }
    return found
  })

/** Added to the characters of each text: its key, and their places in a map. */
const entryBytes = 250

/** Marks a text that is being read. A change of one of its keys removes the mark. */
class Loading {}

/** The key and every wildcard that matches the key. */
const filtersOver = (key: string): ReadonlyArray<string> => {
  const filters = [key]
  for (let dot = key.indexOf("."); dot >= 0; dot = key.indexOf(".", dot + 1))
    filters.push(`${key.slice(0, dot)}.>`)
  return filters
}

class CachedTexts {
  readonly #texts: MemoryCache<string>
  readonly #loading = new Map<string, Loading>()
  /** Bytes of the last text that was made: others are about as large. */
  #lastBytes = entryBytes

  constructor(share: Share) {
    this.#texts = new MemoryCache(share)
  }

  find(filter: string): string | undefined {
    return this.#texts.get(filter)
  }

  begin(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters) this.#loading.set(filter, loading)
  }

  cancel(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters)
      if (this.#loading.get(filter) === loading) this.#loading.delete(filter)
  }

  /** Stores the JSON of what was read, unless a key changed meanwhile or the memory is full. */
  place(filter: string, value: unknown, loading: Loading): void {
    if (this.#loading.get(filter) !== loading) return
    this.#loading.delete(filter)
    this.#texts.setMade(filter, this.#lastBytes, () => {
      const text = JSON.stringify(value)
      this.#lastBytes = text.length + entryBytes
      return { value: text, bytes: this.#lastBytes }
    })
  }

  /** Drops every text that has the key. */
  invalidate(key: string): void {
    for (const filter of filtersOver(key)) {
      this.#texts.drop(filter)
      this.#loading.delete(filter)
    }
  }

  clear(): void {
    this.#texts.clear()
    this.#loading.clear()
  }
}
