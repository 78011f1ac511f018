// The limit of changes that a bucket has no room for, and that a follower holds in memory.
import * as Effect from "effect/Effect"
import type { BucketName } from "#streams/buckets.ts"
import { unavailable } from "../connection/errors.ts"
import type { CachedEntries } from "./cached-entries.ts"

/** Entries, and bytes of JSON. Beyond either the follower stops. */
const unstoredMax = 20_000
const unstoredBytesMax = 64 * 1024 ** 2

interface Unstored {
  readonly bucket: BucketName
  readonly entries: CachedEntries<unknown>
  readonly unstored: ReadonlyMap<string, number>
}

/** Fails when too many changes wait for room. */
export const checkUnstored = ({ bucket, entries, unstored }: Unstored) =>
  Effect.suspend(() => {
    if (unstored.size === 0) return Effect.void
    const bytes = [...unstored.keys()].reduce((sum, key) => sum + entries.loaded(key).textBytes, 0)
    if (unstored.size <= unstoredMax && bytes <= unstoredBytesMax) return Effect.void
    return unavailable(`write ${bucket}`)(
      new Error(`${unstored.size} entries (${bytes} bytes) wait for room`)
    )
  })
