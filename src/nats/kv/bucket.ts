// The KV buckets: reads (read-one.ts, read-many.ts), writes that expect a revision, and the changes
// of a bucket, in order and without a gap.

import { type ConsumerMessages, DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { type BucketName, bucketStream, bucketSubject, metaKey } from "#streams/buckets.ts"
import { Nats } from "../connection/connection.ts"
import {
  AppendConflict,
  attempt,
  codeOf,
  type NatsUnavailable,
  notStored,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/errors.ts"
import { removeMessage } from "../stream/event-log.ts"
import { lastSeqOf } from "../stream/info.ts"
import { pullWithin } from "../stream/pull.ts"
import { makeGetMany } from "./read-many.ts"
import { makeGet } from "./read-one.ts"
import type { BucketOf, Entry, ValueOf } from "./values.ts"

const inFlightDelay = Schedule.spaced("2 millis")
const inFlightRetries = 50
const putMillis = 5_000
/** Changes that are read ahead. */
const changesInFlight = 1_024
const expiresMillis = 5_000
/** Events of nats.js after which changes may be missing, or the bucket may be another one. */
const gaps: ReadonlyArray<string> = ["ordered_consumer_recreated", "stream_not_found"]

interface PutOptions {
  /** The server deletes the entry after this time, or never, whatever the bucket's limit of age. */
  readonly ttlSeconds: number | "never"
}

type Put = Effect.Effect<number, AppendConflict | NatsUnavailable>

export class Buckets extends Context.Service<
  Buckets,
  {
    /** The last revision of the bucket, as its leader has it. */
    readonly revision: (bucket: BucketName) => Effect.Effect<number, NatsUnavailable>
    /**
     * The entry as the leader has it, so that acknowledged writes are visible. Where a rebuild is
     * under way or ended half-way, fails instead of saying that there is none.
     */
    readonly get: <K extends string>(
      bucket: BucketOf<K>,
      key: K
    ) => Effect.Effect<Entry<ValueOf<K>> | undefined, NatsUnavailable>
    /**
     * Writes the entry if its revision is still `revision` (0: if there is no entry), else fails
     * with AppendConflict. Returns the new revision.
     */
    readonly put: <K extends string>(
      bucket: BucketOf<K>,
      key: K,
      value: ValueOf<K>,
      revision: number,
      options?: PutOptions
    ) => Put
    /** Like `put`, with the JSON of the value. */
    readonly putText: (
      bucket: BucketName,
      key: string,
      text: string,
      revision: number,
      options?: PutOptions
    ) => Put
    /** Removes the entry with this revision. An entry with a later revision stays. */
    readonly remove: (bucket: BucketName, revision: number) => Effect.Effect<void, NatsUnavailable>
    /**
     * All entries that these keys or wildcards match, from any replica that has at least revision
     * `minRevision` of the bucket. Undefined when the entries exceed one response (1024 entries or
     * 64 MB): then ask for fewer.
     */
    readonly getMany: <K extends string>(
      bucket: BucketOf<K>,
      filters: ReadonlyArray<K>,
      minRevision: number
    ) => Effect.Effect<ReadonlyArray<Entry<ValueOf<K>>> | undefined, NatsUnavailable>
    /**
     * Calls `changed` with the key of every change after revision `after`, in order and without a
     * gap, but not of the pages with owners of endpoints. Fails when there may be a gap, also
     * when the client had to create its consumer again: the bucket may be another one since.
     * `only`: a wildcard over the keys that are wanted, with the JSON of their entries.
     */
    readonly changes: (
      bucket: BucketName,
      after: number,
      changed: (key: string, revision: number, text: string) => void,
      only?: string
    ) => Effect.Effect<never, NatsUnavailable>
  }
>()("bellcast/nats/Buckets") {
  static readonly layer = Layer.effect(
    Buckets,
    Effect.gen(function* () {
      const nats = yield* Nats
      const putText = putTextWith(nats)
      return Buckets.of({
        revision: (bucket) => lastSeqOf(nats, bucketStream(bucket)),
        // The types of keys and values hold at compile time only: see values.ts.
        get: makeGet(nats, yield* Effect.scope) as Buckets["Service"]["get"],
        put: (bucket, key, value, revision, options) =>
          putText(bucket, key, JSON.stringify(value), revision, options),
        putText,
        // Of this bucket only the lists of erased users are removed.
        remove: (bucket, revision) =>
          removeMessage(nats, bucketStream(bucket), revision, bucket === "subscriptions"),
        getMany: makeGetMany(nats) as Buckets["Service"]["getMany"],
        changes: (...given) => changes(nats.js, ...given)
      })
    })
  )
}

type Door = Nats["Service"]

/** The header of an entry that stays whatever the bucket's limit of age. */
export const neverExpires = { "Nats-TTL": "never" }

/** `meta` outlives the entries of its bucket: without it, nobody would know that they are gone. */
const ttlOf = (key: string, options: PutOptions | undefined): Readonly<Record<string, string>> => {
  if (key === metaKey || options?.ttlSeconds === "never") return neverExpires
  return options === undefined ? {} : { "Nats-TTL": `${options.ttlSeconds}s` }
}

const putTextWith =
  ({ store }: Door): Buckets["Service"]["putText"] =>
  (bucket, key, text, revision, options) => {
    const headers = {
      "Nats-Expected-Last-Subject-Sequence": String(revision),
      ...ttlOf(key, options)
    }
    const message = { subject: bucketSubject(bucket, key), payload: text, headers }
    return store(bucketStream(bucket), message, putMillis).pipe(
      Effect.retry({
        times: inFlightRetries,
        while: (failure) => codeOf(failure) === wrongLastSequenceInFlight,
        schedule: inFlightDelay
      }),
      Effect.map(({ seq }) => seq),
      Effect.mapError((cause) =>
        codeOf(cause) === wrongLastSequence
          ? new AppendConflict({ subject: key })
          : notStored(`put ${bucket}`, bucketStream(bucket), cause)
      )
    )
  }

/** See `Buckets.changes`. */
const changes = (
  js: JetStreamClient,
  ...[bucket, after, changed, only]: Parameters<Buckets["Service"]["changes"]>
): Effect.Effect<never, NatsUnavailable> => {
  const operation = `changes of ${bucket}`
  return Effect.acquireUseRelease(
    attempt(operation, () => openChanges(js, bucket, after, only)),
    (messages) =>
      attempt(operation, () => passChanges(messages, bucketSubject(bucket, ""), changed)),
    (messages) =>
      Effect.promise(() => messages.close()).pipe(Effect.timeoutOption("1 second"), Effect.ignore)
  )
}

/** Keys of pages with owners have two tokens, all others of that bucket one. Nobody needs them. */
const changedKeys = (bucket: BucketName) => (bucket === "subscriptions" ? "*" : ">")

const openChanges = async (
  js: JetStreamClient,
  bucket: BucketName,
  after: number,
  only: string | undefined
) => {
  const consumer = await js.consumers.get(bucketStream(bucket), {
    filter_subjects: [bucketSubject(bucket, only ?? changedKeys(bucket))],
    headers_only: only === undefined,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: after + 1
  })
  const max_messages = await pullWithin(consumer, changesInFlight)
  return consumer.consume({ max_messages, expires: expiresMillis })
}

/** Calls `changed` for every change. Rejects when changes may be missing. */
const passChanges = async (
  messages: ConsumerMessages,
  prefix: string,
  changed: (key: string, revision: number, text: string) => void
): Promise<never> => {
  let why = "the stream ended"
  const watch = async () => {
    for await (const { type } of messages.status()) {
      if (!gaps.includes(type)) continue
      why = type
      messages.stop()
    }
  }
  watch().catch(() => {})
  for await (const msg of messages) changed(msg.subject.slice(prefix.length), msg.seq, msg.string())
  throw new Error(why)
}
