// Reads all entries of a bucket, for rebuilds and for counts that are made once.
import { DeliverPolicy } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import { Nats } from "../connection/connection.ts"
import { attempt } from "../connection/errors.ts"
import { textOf } from "../connection/headers.ts"
import { readAll } from "../stream/read-all.ts"
import { readDirect } from "../stream/read-direct.ts"
import type { ValueIn } from "./values.ts"

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
