// Reads many entries of a bucket with as few requests as the server allows.
import * as Effect from "effect/Effect"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { Buckets } from "./bucket.ts"
import type { BucketOf, Entry, ValueOf } from "./values.ts"

/**
 * Reads the entries of keys or wildcards with one request; in halves where they do not fit into one
 * response. `narrow`: the parts of a single wildcard that does not fit.
 */
export const readParts = <K extends string>(
  buckets: Buckets["Service"],
  bucket: BucketOf<K>,
  filters: ReadonlyArray<K>,
  minRevision: number,
  narrow: (filter: K) => ReadonlyArray<K> = () => []
): Effect.Effect<ReadonlyArray<Entry<ValueOf<K>>>, NatsUnavailable> =>
  Effect.gen(function* () {
    const entries = yield* buckets.getMany(bucket, filters, minRevision)
    if (entries !== undefined) return entries
    const half = Math.ceil(filters.length / 2)
    const parts =
      filters.length > 1
        ? [filters.slice(0, half), filters.slice(half)]
        : narrow(filters[0]!).map((filter) => [filter])
    if (parts.length === 0)
      return yield* unavailable(`read ${bucket}`)(new Error("one entry is too large"))
    const below = yield* Effect.forEach(parts, (part) =>
      readParts(buckets, bucket, part, minRevision, narrow)
    )
    return below.flat()
  })
