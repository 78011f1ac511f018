// What a follower remembers of a bucket between batches: entries read once, changed in memory, written back fenced by their revision.
import { Effect } from "effect"
import type { BucketName } from "#streams/buckets.ts"
import { Buckets } from "./bucket.ts"
import { LogUnavailable } from "./errors.ts"

/** Remembered entries; beyond this the oldest are forgotten and read again when needed. About 1 KB each. */
const rememberedMax = 20_000
/** All that a follower handles at once, so that its writes are stored together. */
const ioConcurrency = 256

export interface WorkingSet<V> {
  /** Reads what is not remembered yet. */
  readonly load: (keys: Iterable<string>) => Effect.Effect<void, LogUnavailable>
  /** The value of a loaded key. */
  readonly get: (key: string) => V | undefined
  readonly set: (key: string, value: V) => void
  /** Writes what was set since. Another writer's change fails it: this follower is not the only one any more. */
  readonly flush: Effect.Effect<void, LogUnavailable>
  /** The highest revision known of the bucket. */
  readonly revision: () => number
}

export const makeWorkingSet = Effect.fnUntraced(function* <V>(bucket: BucketName) {
  const buckets = yield* Buckets
  let highest = yield* buckets.revision(bucket)
  const entries = new Map<string, { value: V | undefined; revision: number }>()
  const changed = new Set<string>()

  const load = (keys: Iterable<string>) =>
    Effect.forEach(
      [...new Set(keys)].filter((key) => !entries.has(key)),
      (key) =>
        buckets.get(bucket, key).pipe(
          Effect.map((entry) =>
            entries.set(key, {
              value: entry?.value as V | undefined,
              revision: entry?.revision ?? 0
            })
          )
        ),
      { concurrency: ioConcurrency, discard: true }
    )

  const flush = Effect.suspend(() => {
    const keys = [...changed]
    changed.clear()
    return Effect.forEach(
      keys,
      (key) => {
        const entry = entries.get(key)!
        return buckets.put(bucket, key, entry.value, entry.revision).pipe(
          Effect.tap((revision) =>
            Effect.sync(() => {
              entry.revision = revision
              highest = Math.max(highest, revision)
            })
          )
        )
      },
      { concurrency: ioConcurrency, discard: true }
    )
  }).pipe(
    Effect.mapError((error) =>
      error._tag === "LogUnavailable"
        ? error
        : new LogUnavailable({ operation: `write ${bucket}`, cause: error })
    ),
    Effect.tap(() =>
      Effect.sync(() => {
        for (const key of entries.keys()) {
          if (entries.size <= rememberedMax) break
          entries.delete(key)
        }
      })
    )
  )

  const set: WorkingSet<V> = {
    load,
    flush,
    get: (key) => entries.get(key)?.value,
    set: (key, value) => {
      const entry = entries.get(key)!
      if (entry.value === value) return
      entry.value = value
      changed.add(key)
    },
    revision: () => highest
  }
  return set
})
