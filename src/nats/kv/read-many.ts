// Multi-get: reads many entries of a bucket with one request, from any replica (ADR-31).
import type { Msg } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import type { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { textOf } from "../connection/headers.ts"
import {
  type DirectMessage,
  type DirectStatus,
  directOf,
  endOfBatch,
  tooLarge
} from "../stream/read-direct.ts"
import type { Entry, Meta } from "./values.ts"

/** The server refuses more than 1024 entries; it counts `meta` too. */
const batchMax = 1_025
const timeoutMillis = 5_000
/** 40 attempts, 25 ms apart: a replica has 1 s to catch up. */
const replicaAttempts = 40
const replicaDelay = "25 millis"

/** Returns a function that reads entries. See `getMany` of `Buckets`. */
export const makeGetMany = (nats: Nats["Service"]) =>
  Effect.fnUntraced(function* (
    bucket: BucketName,
    filters: ReadonlyArray<string>,
    minRevision: number
  ) {
    if (filters.length === 0) return []
    for (let attempt = 1; ; attempt++) {
      const { entries, upTo } = yield* multiGet(nats, bucket, filters)
      // A replica that lags behind responds too, with the last revision that it has.
      if (upTo >= minRevision) return entries
      if (attempt === replicaAttempts)
        return yield* unavailable(`read ${bucket}`)(
          new Error(`no replica reached revision ${minRevision}`)
        )
      yield* Effect.sleep(replicaDelay)
    }
  })

/** Reads the entries of these keys or wildcards from whichever replica responds. */
const multiGet = (
  { api, requestMany }: Nats["Service"],
  bucket: BucketName,
  filters: ReadonlyArray<string>
): Effect.Effect<MultiGet, NatsUnavailable> =>
  Effect.callback((resume) => {
    const prefix = bucketSubject(bucket, "")
    const entries: Array<Entry> = []
    const fail = (cause: unknown) => resume(Effect.fail(unavailable(`read ${bucket}`)(cause)))
    const receive = (msg: Msg): boolean => {
      const response = directOf(msg)
      if ("seq" in response) {
        if (addEntry(entries, prefix, response)) return false
        resume(Effect.fail(unbuilt(bucket)))
        return true
      }
      const result = resultOf(response, entries)
      if (result !== undefined) resume(Effect.succeed(result))
      else fail(new Error(`multi-get answered ${response.code} ${response.description}`))
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

interface MultiGet {
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
const addEntry = (entries: Array<Entry>, prefix: string, message: DirectMessage): boolean => {
  const { data, seq, subject } = message
  const key = subject.slice(prefix.length)
  if (key === metaKey) return !isUnbuilt(JSON.parse(textOf(data)))
  if (data.length === 0) return true
  entries.push({ key, value: JSON.parse(textOf(data)), revision: seq, bytes: data.length })
  return true
}

/** The result by the message that ends the response; undefined when the server refused. */
const resultOf = (
  { code, header }: DirectStatus,
  entries: ReadonlyArray<Entry>
): MultiGet | undefined => {
  if (code === tooLarge) return tooMany
  if (code !== endOfBatch) return undefined
  // The server stops after 64 MB. Only this header says how many entries are missing.
  if (Number(header("Nats-Num-Pending") ?? 0) > 0) return tooMany
  return { entries, upTo: Number(header("Nats-UpTo-Sequence") ?? 0) }
}
