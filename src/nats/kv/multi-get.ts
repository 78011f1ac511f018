// Multi-get: reads many entries of a bucket with one request, from any replica (ADR-31).
import type { Msg } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import type { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { Entry, Meta } from "./values.ts"

/** The server refuses more than 1024 entries; it counts `meta` too. */
const batchMax = 1_025
const timeoutMillis = 5_000

/** Status codes of the message that ends a response. */
const endOfBatch = 204
const tooLarge = 413

export interface MultiGet {
  /** Undefined: more than one response can hold. */
  readonly entries: ReadonlyArray<Entry> | undefined
  /** The last revision of the bucket that the replica has. */
  readonly upTo: number
}

/** The error of a bucket that lacks what the streams have: it must not say what is absent. */
export const unbuilt = (bucket: BucketName) =>
  unavailable(`read ${bucket}`)(new Error(`${bucketStream(bucket)} is half built: run a rebuild`))

/** Whether a `meta` entry says that its bucket is half built. */
export const isUnbuilt = (meta: unknown): boolean => (meta as Meta).unbuilt === true

const tooMany: MultiGet = { entries: undefined, upTo: Number.MAX_SAFE_INTEGER }

/** Returns whether the bucket can be read. */
const addEntry = (entries: Array<Entry>, prefix: string, msg: Msg): boolean => {
  const key = (msg.headers?.get("Nats-Subject") ?? "").slice(prefix.length)
  if (key === metaKey) return !isUnbuilt(msg.json())
  if (msg.data.length === 0) return true
  entries.push({
    key,
    value: msg.json(),
    revision: Number(msg.headers?.get("Nats-Sequence")),
    bytes: msg.data.length
  })
  return true
}

/** The result by the message that ends the response; undefined when the server refused. */
const resultOf = (msg: Msg, entries: ReadonlyArray<Entry>): MultiGet | undefined => {
  const { headers } = msg
  if (headers?.code === tooLarge) return tooMany
  if (headers?.code !== endOfBatch) return undefined
  // The server stops after 64 MB. Only this header says how many entries are missing.
  if (Number(headers.get("Nats-Num-Pending") || 0) > 0) return tooMany
  return { entries, upTo: Number(headers.get("Nats-UpTo-Sequence") || 0) }
}

/** Reads the entries of these keys or wildcards from whichever replica responds. */
export const multiGet = (
  { api, requestMany }: Nats["Service"],
  bucket: BucketName,
  filters: ReadonlyArray<string>
): Effect.Effect<MultiGet, NatsUnavailable> =>
  Effect.callback((resume) => {
    const prefix = bucketSubject(bucket, "")
    const entries: Array<Entry> = []
    const fail = (cause: unknown) => resume(Effect.fail(unavailable(`read ${bucket}`)(cause)))
    const receive = (msg: Msg): boolean => {
      if ((msg.headers?.code ?? 0) === 0) {
        if (addEntry(entries, prefix, msg)) return false
        resume(Effect.fail(unbuilt(bucket)))
        return true
      }
      const result = resultOf(msg, entries)
      if (result !== undefined) resume(Effect.succeed(result))
      else fail(new Error(`multi-get answered ${msg.headers?.code} ${msg.headers?.description}`))
      return true
    }
    // `meta` always exists: a response without any entry would not say which revision it is of.
    const request = {
      multi_last: [...filters, metaKey].map((key) => prefix + key),
      batch: batchMax
    }
    const subject = `${api}.DIRECT.GET.${bucketStream(bucket)}`
    const payload = JSON.stringify(request)
    return Effect.sync(requestMany({ subject, payload, timeoutMillis }, receive, fail))
  })
