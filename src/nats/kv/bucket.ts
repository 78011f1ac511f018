// The KV buckets: reads from the leader, writes that expect a revision, and reads of many keys from
// a replica that has a given revision.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import {
  type BucketName,
  bucketStream,
  bucketSubject,
  isEndpointOwners,
  metaKey
} from "#streams/buckets.ts"
import { Nats } from "../connection/connection.ts"
import {
  AppendConflict,
  attempt,
  codeOf,
  isMessageMissing,
  type NatsUnavailable,
  notStored,
  unavailable,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/errors.ts"
import { lastSeqOf } from "../stream/info.ts"
import { changes } from "./changes.ts"
import { isUnbuilt, multiGet, unbuilt } from "./multi-get.ts"
import { makeReadOne } from "./read-one.ts"
import type { BucketOf, Entry, ValueOf } from "./values.ts"

const inFlightDelay = Schedule.spaced("2 millis")
const inFlightRetries = 50
/** 40 attempts, 25 ms apart: a replica has 1 s to catch up. */
const replicaAttempts = 40
const replicaDelay = "25 millis"
const putMillis = 5_000

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
     */
    readonly changes: (
      bucket: BucketName,
      after: number,
      changed: (key: string, revision: number) => void
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
        get: getWith(nats, yield* Effect.scope) as Buckets["Service"]["get"],
        put: (bucket, key, value, revision, options) =>
          putText(bucket, key, JSON.stringify(value), revision, options),
        putText,
        remove: removeWith(nats),
        getMany: getManyWith(nats) as Buckets["Service"]["getMany"],
        changes: (bucket, after, changed) => changes(nats.js, bucket, after, changed)
      })
    })
  )
}

type Door = Nats["Service"]

/**
 * A reader that has read `meta` takes the bucket as built for this long after it asked. What marks
 * a bucket as unbuilt, or makes it again, waits for twice this long before entries are missing.
 */
export const builtMillis = 100

type ReadOne = ReturnType<typeof makeReadOne>

/**
 * Returns a function that fails if a bucket that was lost is being rebuilt: it lacks entries that
 * there are.
 */
const makeCheckBuilt = (read: ReadOne, scope: Scope.Scope) => {
  const checks = new Map<
    BucketName,
    { began: number; result: Deferred.Deferred<void, NatsUnavailable> }
  >()
  const readMeta = Effect.fnUntraced(function* (bucket: BucketName) {
    const meta = yield* read(bucket, metaKey)
    if (meta === undefined || isUnbuilt(meta.value)) return yield* unbuilt(bucket)
  })
  return Effect.fnUntraced(function* (bucket: BucketName) {
    const now = performance.now()
    const latest = checks.get(bucket)
    if (latest !== undefined && now < latest.began + builtMillis)
      return yield* Deferred.await(latest.result)
    const check = { began: now, result: Deferred.makeUnsafe<void, NatsUnavailable>() }
    checks.set(bucket, check)
    const forget = Effect.sync(() => {
      if (checks.get(bucket) === check) checks.delete(bucket)
    })
    // In the scope, because others wait for it: this caller may be interrupted.
    yield* readMeta(bucket).pipe(
      Effect.onError(() => forget),
      Deferred.into(check.result),
      Effect.forkIn(scope)
    )
    return yield* Deferred.await(check.result)
  })
}

const getWith = (nats: Door, scope: Scope.Scope) => {
  const read = makeReadOne(nats, scope)
  const checkBuilt = makeCheckBuilt(read, scope)
  return Effect.fnUntraced(function* (bucket: BucketName, key: string) {
    const found = yield* read(bucket, key)
    if (found !== undefined || key === metaKey || bucket === "cache") return found
    // Most endpoints have no page. Readers of pages read a list of the bucket, too, and that read
    // finds out whether the bucket is built.
    if (!isEndpointOwners(key)) yield* checkBuilt(bucket)
    return undefined
  })
}

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

/** Deletes the message without a marker, so that the next entry of the key expects revision 0. */
const removeWith =
  ({ jsm }: Door) =>
  (bucket: BucketName, revision: number) =>
    attempt(`remove from ${bucket}`, async () => {
      try {
        await jsm.streams.deleteMessage(bucketStream(bucket), revision, false)
      } catch (error) {
        if (!isMessageMissing(error)) throw error
      }
    })

const getManyWith = (nats: Door) =>
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
