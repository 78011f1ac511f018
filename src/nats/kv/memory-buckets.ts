// Buckets in the memory of a process, with the same operations: what a rebuild folds the streams
// into before it compares the result with the server. They hold as much as the streams.
import * as Effect from "effect/Effect"
import type { BucketName } from "#streams/buckets.ts"
import { AppendConflict, unavailable } from "../connection/errors.ts"
import type { Buckets } from "./bucket.ts"

/** The JSON of an entry and its revision, which means nothing on the server. */
interface TextEntry {
  readonly text: string
  readonly revision: number
}

export interface MemoryBuckets {
  readonly buckets: Buckets["Service"]
  /** The entries of a bucket by key, with `meta`. */
  readonly entries: (bucket: BucketName) => ReadonlyMap<string, TextEntry>
}

/** The bucket is read by key only. */
const notHere = Effect.fail(unavailable("read a bucket in memory")(new Error("not supported")))

export const makeMemoryBuckets = (): MemoryBuckets => {
  const all = new Map<BucketName, Map<string, TextEntry>>()
  const keyOf = new Map<number, string>()
  let last = 0

  const entries = (bucket: BucketName): Map<string, TextEntry> => {
    const found = all.get(bucket) ?? new Map<string, TextEntry>()
    all.set(bucket, found)
    return found
  }

  const get = (bucket: BucketName, key: string) =>
    Effect.sync(() => {
      const entry = entries(bucket).get(key)
      if (entry === undefined) return undefined
      const { revision, text } = entry
      return { key, value: JSON.parse(text), revision, bytes: text.length }
    })

  const putText: Buckets["Service"]["putText"] = (bucket, key, text, revision) =>
    Effect.suspend(() => {
      const map = entries(bucket)
      if ((map.get(key)?.revision ?? 0) !== revision)
        return Effect.fail(new AppendConflict({ subject: key }))
      keyOf.delete(revision)
      map.set(key, { text, revision: ++last })
      keyOf.set(last, key)
      return Effect.succeed(last)
    })

  const remove = (bucket: BucketName, revision: number) =>
    Effect.sync(() => {
      const key = keyOf.get(revision)
      if (key !== undefined && keyOf.delete(revision)) entries(bucket).delete(key)
    })

  const buckets: Buckets["Service"] = {
    revision: () => Effect.succeed(0),
    get,
    put: (bucket, key, value, revision) => putText(bucket, key, JSON.stringify(value), revision),
    putText,
    remove,
    getMany: () => notHere,
    changes: () => notHere
  }
  return { buckets, entries }
}
