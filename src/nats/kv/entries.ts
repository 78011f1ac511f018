// Reads many entries of a bucket: those of some keys or wildcards with as few requests as the
// server allows, or all of them, for rebuilds and for counts that are made once.

import { DeliverPolicy } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { textOf } from "../connection/headers.ts"
import { readAll } from "../stream/pull.ts"
import { readDirect } from "../stream/read-direct.ts"
import type { Buckets } from "./bucket.ts"
import type { BucketOf, Entry, ValueIn, ValueOf } from "./values.ts"

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

/**
 * Passes every entry of a bucket to `see`, with `meta`: the text, the revision, and when the server
 * stored it, in milliseconds since the epoch. The text of an entry that a client of NATS deleted is
 * empty. An entry that changes meanwhile may come twice; none is missed. Reads the whole bucket.
 */
export const eachStored = (
  bucket: BucketName,
  see: (key: string, text: string, revision: number, at: number) => void
) =>
  Effect.flatMap(Nats, ({ js }) =>
    attempt(`read ${bucket}`, async () => {
      const prefix = bucketSubject(bucket, "")
      const options = {
        filter_subjects: [`${prefix}>`],
        deliver_policy: DeliverPolicy.LastPerSubject
      }
      for await (const batch of readAll(js, bucketStream(bucket), "last", options))
        for (const msg of batch)
          see(msg.subject.slice(prefix.length), msg.string(), msg.seq, msg.time.getTime())
    })
  )

/**
 * Passes every entry of a bucket but `meta` to `see`, from any replica and without a consumer,
 * which auditors may not create. An entry that changes meanwhile may come twice. Reads the whole
 * bucket.
 */
export const scanEntries = <B extends BucketName>(
  bucket: B,
  see: (key: string, value: ValueIn<B>) => void
) =>
  Effect.flatMap(Nats, (nats) =>
    attempt(`read ${bucket}`, async () => {
      const prefix = bucketSubject(bucket, "")
      for await (const batch of readDirect(nats, bucketStream(bucket), `${prefix}>`))
        for (const msg of batch) {
          const key = msg.subject.slice(prefix.length)
          if (key !== metaKey && msg.data.length > 0) see(key, JSON.parse(textOf(msg.data)))
        }
    })
  )

/**
 * Passes every entry of a bucket but `meta` to `see`, with when the server stored it. An entry that
 * changes meanwhile may come twice; none is missed. Reads the whole bucket.
 */
export const eachEntry = <B extends BucketName>(
  bucket: B,
  see: (key: string, value: ValueIn<B>, at: number) => void
) =>
  eachStored(bucket, (key, text, _, at) => {
    if (key !== metaKey && text !== "") see(key, JSON.parse(text), at)
  })
