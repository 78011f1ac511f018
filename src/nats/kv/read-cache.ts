// What a worker remembers of a bucket: lists read once, and forgotten as soon as the bucket tells that one of their keys has changed.
import { Cause, Effect, Schedule } from "effect"
import type { BucketName } from "#streams/buckets.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import { Buckets } from "./bucket.ts"

/** The news of a change takes a few milliseconds; when it takes longer, the bucket is asked. */
const newsMillis = 100
/** One in so many takes the place of an older one where memory is full: larger channels than fit still find most of what is remembered. */
const replacedOneIn = 16
const again = Schedule.spaced("250 millis")

/** Reads what is not remembered: a list for each of these keys or wildcards, from a replica that has at least revision `floor`. */
export type ReadLists<A> = (
  filters: ReadonlyArray<string>,
  floor: number
) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<A>>, NatsUnavailable>

export interface ReadCache<A> {
  /** The lists of these keys or wildcards, as they were at revision `floor` or later. */
  readonly lists: (
    filters: ReadonlyArray<string>,
    floor: number
  ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<A>>, NatsUnavailable>
}

/** The key itself and every wildcard that stands for it. */
const filtersOver = (key: string): ReadonlyArray<string> => {
  const filters = [key]
  for (let dot = key.indexOf("."); dot >= 0; dot = key.indexOf(".", dot + 1))
    filters.push(`${key.slice(0, dot)}.>`)
  return filters
}

/** Stands where a list will be, if nothing changes while it is read. */
class Loading {}

/** Remembers lists with at most `itemsMax` items together. Follows the bucket for as long as the scope lives. */
export const makeReadCache = Effect.fnUntraced(function* <A>(
  bucket: BucketName,
  itemsMax: number,
  read: ReadLists<A>
) {
  const buckets = yield* Buckets
  const known = new Map<string, ReadonlyArray<A> | Loading>()
  let items = 0
  let unplaced = 0
  /** All changes up to this revision are known; -1: the bucket is not followed at the moment. */
  let seen = -1

  const weightOf = (list: ReadonlyArray<A>) => Math.max(1, list.length)

  const forget = (filter: string) => {
    const list = known.get(filter)
    if (list === undefined) return
    known.delete(filter)
    if (!(list instanceof Loading)) items -= weightOf(list as ReadonlyArray<A>)
  }

  const place = (filter: string, list: ReadonlyArray<A>, loading: Loading) => {
    // Changed while it was read: what was read is good for this once.
    if (known.get(filter) !== loading) return
    known.delete(filter)
    const weight = weightOf(list)
    if (items + weight > itemsMax && ++unplaced % replacedOneIn !== 0) return
    for (const [oldest, each] of known) {
      if (items + weight <= itemsMax) break
      if (!(each instanceof Loading)) forget(oldest)
    }
    if (items + weight > itemsMax) return
    known.set(filter, list)
    items += weight
  }

  const follow = Effect.gen(function* () {
    seen = yield* buckets.revision(bucket)
    // Whoever was reading when the last run failed may have put something here since.
    known.clear()
    items = 0
    return yield* buckets.changes(bucket, seen, (key, revision) => {
      if (revision <= seen) throw new Error("revisions go back: the bucket was made anew")
      for (const filter of filtersOver(key)) forget(filter)
      seen = revision
    })
  }).pipe(
    Effect.tapCause((cause) =>
      Effect.suspend(() => {
        const said = seen === -1 || Cause.hasInterruptsOnly(cause)
        seen = -1
        known.clear()
        items = 0
        return said
          ? Effect.void
          : Effect.logWarning(
              `changes of ${bucket} cannot be followed: it is read each time`,
              cause
            )
      })
    ),
    Effect.retry(again)
  )
  yield* Effect.forkScoped(follow)

  const heardOf = (floor: number) =>
    Effect.suspend(() =>
      seen >= floor
        ? Effect.succeed(true)
        : Effect.sleep("2 millis").pipe(
            Effect.repeat({ until: () => seen >= floor }),
            Effect.timeoutOption(newsMillis),
            Effect.map(({ _tag }) => _tag === "Some")
          )
    )

  const lists = Effect.fnUntraced(function* (filters: ReadonlyArray<string>, floor: number) {
    if (!(yield* heardOf(floor))) return yield* read(filters, floor)
    const found = new Map<string, ReadonlyArray<A>>()
    const missing: Array<string> = []
    for (const filter of filters) {
      const list = known.get(filter)
      if (list === undefined || list instanceof Loading) missing.push(filter)
      else found.set(filter, list)
    }
    if (missing.length === 0) return found
    const loading = new Loading()
    for (const filter of missing) known.set(filter, loading)
    // Not older than what has been heard of: a change heard before would not be heard of again.
    const answers = yield* read(missing, Math.max(floor, seen)).pipe(
      Effect.onError(() =>
        Effect.sync(() => {
          for (const filter of missing) if (known.get(filter) === loading) known.delete(filter)
        })
      )
    )
    for (const filter of missing) {
      const list = answers.get(filter) ?? []
      found.set(filter, list)
      place(filter, list, loading)
    }
    return found
  })

  return { lists } satisfies ReadCache<A>
})
