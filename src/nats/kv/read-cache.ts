// A worker's read cache of a bucket. Lists are read once and dropped as soon as the bucket
// announces a change of one of their keys.
import { Cause, Effect, Schedule } from "effect"
import type { BucketName } from "#streams/buckets.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import { Buckets } from "./bucket.ts"
import { CachedLists, Loading } from "./cached-lists.ts"

/** A change is announced within a few milliseconds. After this time, read the bucket instead. */
const announcedMillis = 100
const again = Schedule.spaced("250 millis")

/** Reads a list for each of these keys or wildcards, as of revision `minRevision` or later. */
export type ReadLists<K extends string, A> = (
  filters: ReadonlyArray<K>,
  minRevision: number
) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<A>>, NatsUnavailable>

export interface ReadCache<K extends string, A> {
  /** The lists of these keys or wildcards, as of revision `minRevision` or later. */
  readonly lists: ReadLists<K, A>
}

interface State<K extends string, A> {
  readonly bucket: BucketName
  readonly buckets: Buckets["Service"]
  readonly read: ReadLists<K, A>
  readonly cached: CachedLists<A>
  /** All changes up to this revision were applied. -1: changes are not followed at the moment. */
  seen: number
  readonly warn: ReturnType<typeof makeRateLimitedLog>
}

/** Makes a cache of at most `itemsMax` items, which follows the bucket until the scope closes. */
export const makeReadCache = Effect.fnUntraced(function* <K extends string, A>(
  bucket: BucketName,
  itemsMax: number,
  read: ReadLists<K, A>
) {
  const buckets = yield* Buckets
  const cached = new CachedLists<A>(itemsMax)
  const warn = makeRateLimitedLog(`changes of ${bucket} cannot be followed: it is read each time`)
  const state: State<K, A> = { bucket, buckets, read, cached, seen: -1, warn }
  yield* Effect.forkScoped(follow(state))
  const cache: ReadCache<K, A> = { lists: listsOf(state) }
  return cache
})

const follow = <K extends string, A>(state: State<K, A>) => {
  const { bucket, buckets, cached } = state
  const run = Effect.gen(function* () {
    state.seen = yield* buckets.revision(bucket)
    // A read that began before the last run failed may have placed a list since.
    cached.clear()
    return yield* buckets.changes(bucket, state.seen, (key, revision) => {
      if (revision <= state.seen) throw new Error("revisions go back: the bucket was made anew")
      cached.invalidate(key)
      state.seen = revision
    })
  })
  return run.pipe(
    Effect.tapCause((cause) => stop(state, cause)),
    Effect.retry(again)
  )
}

const stop = <K extends string, A>(state: State<K, A>, cause: Cause.Cause<unknown>) =>
  Effect.suspend(() => {
    const isSilent = state.seen === -1 || Cause.hasInterruptsOnly(cause)
    state.seen = -1
    state.cached.clear()
    return isSilent ? Effect.void : state.warn({ err: Cause.squash(cause) })
  })

/** Whether all changes up to a revision were applied, after a short wait for them. */
const isCurrent = <K extends string, A>(state: State<K, A>, minRevision: number) =>
  Effect.suspend(() =>
    state.seen >= minRevision
      ? Effect.succeed(true)
      : Effect.sleep("2 millis").pipe(
          Effect.repeat({ until: () => state.seen >= minRevision }),
          Effect.timeoutOption(announcedMillis),
          Effect.map(({ _tag }) => _tag === "Some")
        )
  )

const listsOf = <K extends string, A>(state: State<K, A>): ReadLists<K, A> =>
  Effect.fnUntraced(function* (filters, minRevision) {
    const { cached, read } = state
    if (!(yield* isCurrent(state, minRevision))) return yield* read(filters, minRevision)
    const found = new Map<string, ReadonlyArray<A>>()
    const missing: Array<K> = []
    for (const filter of filters) {
      const list = cached.find(filter)
      if (list === undefined) missing.push(filter)
      else found.set(filter, list)
    }
    if (missing.length === 0) return found
    const loading = new Loading()
    cached.begin(missing, loading)
    // Read at `seen` or later: changes up to `seen` are not announced again.
    const lists = yield* read(missing, Math.max(minRevision, state.seen)).pipe(
      Effect.onError(() => Effect.sync(() => cached.cancel(missing, loading)))
    )
    for (const filter of missing) {
      const list = lists.get(filter) ?? []
      found.set(filter, list)
      cached.place(filter, list, loading)
    }
    return found
  })
