// Makes the server match streams/: creates missing streams, consumers and buckets, updates those
// that differ, deletes none.
import { setTimeout as sleep } from "node:timers/promises"
import {
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager
} from "@nats-io/jetstream"
import { nanos, headers as natsHeaders } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import {
  type BucketName,
  bucketNames,
  bucketStream,
  bucketSubject,
  buckets,
  metaKey
} from "#streams/buckets.ts"
import { allStreams, consumers, storedForm } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import {
  ackPendingExceeds,
  consumerExists,
  NoStorage,
  streamNotFound,
  unavailable,
  wrongLastSequence,
  wrongLastSequenceInFlight
} from "../connection/errors.ts"
import { neverExpires } from "../kv/bucket.ts"
import { builtMillis } from "../kv/read-one.ts"
import { consumerConfig, formKey } from "../stream/info.ts"
import {
  type BytesMax,
  createWithin,
  ensureStreams,
  findStream,
  type Sized,
  unlessCode
} from "./ensure-streams.ts"
import { limitFault } from "./limits.ts"

/**
 * Pull requests that wait at one consumer. nats-server cannot change this limit after the creation,
 * so it is far above what processes need.
 */
const waitingMax = 16_384

const streamConfig =
  (spec: StreamSpec): Sized =>
  (bytesMax, replicas) => ({
    name: spec.name,
    subjects: [...spec.subjects],
    max_age: nanos(spec.maxAgeMillis),
    max_bytes: bytesMax,
    max_msg_size: spec.maxMessageBytes,
    duplicate_window: nanos(spec.duplicateWindowMillis),
    metadata: { [formKey]: storedForm.streams },
    deny_purge: spec.denyPurge,
    discard: DiscardPolicy.New,
    allow_atomic: true,
    allow_direct: true,
    num_replicas: replicas
  })

const bucketConfig =
  (bucket: BucketName): Sized =>
  (bytesMax, replicas) => ({
    name: bucketStream(bucket),
    subjects: [bucketSubject(bucket, ">")],
    max_msgs_per_subject: 1,
    max_age: nanos(buckets[bucket].ttlMillis),
    max_bytes: bytesMax,
    max_msg_size: buckets[bucket].maxValueBytes,
    metadata: { [formKey]: storedForm.buckets },
    discard: buckets[bucket].forgets ? DiscardPolicy.Old : DiscardPolicy.New,
    allow_atomic: true,
    allow_rollup_hdrs: true,
    allow_direct: true,
    allow_msg_ttl: true,
    num_replicas: replicas
  })

/**
 * Requests a consumer with as many unacknowledged messages as declared, or with as many as the
 * server or the account allows (`max_ack_pending`): fewer are enough for fewer workers.
 */
const withinLimit = async <A>(
  spec: ConsumerSpec,
  request: (config: ReturnType<typeof consumerConfig>) => Promise<A>
): Promise<A> => {
  const config = consumerConfig(spec)
  try {
    return await request(config)
  } catch (error) {
    const isLimited = error instanceof JetStreamApiError && error.code === ackPendingExceeds
    const [, limit] = (isLimited && /limit of (\d+)/.exec(error.message)) || []
    if (limit === undefined) throw error
    return request({ ...config, max_ack_pending: Number(limit) })
  }
}

/** Makes a consumer that delivers from a sequence on. Fails if there is a different one. */
export const createConsumer = (
  jsm: JetStreamManager,
  stream: string,
  spec: ConsumerSpec,
  from = 1
) =>
  withinLimit(spec, (config) =>
    jsm.consumers.add(stream, {
      ...config,
      ...(from <= 1 ? {} : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from }),
      max_waiting: waitingMax
    })
  )

/** Changes a consumer to the declaration, and `more`. Succeeds with what the server made of it. */
export const updateConsumer = (
  jsm: JetStreamManager,
  stream: string,
  spec: ConsumerSpec,
  more: Partial<ConsumerConfig> = {}
) => withinLimit(spec, (config) => jsm.consumers.update(stream, spec.name, { ...config, ...more }))

const ensureConsumer = async (jsm: JetStreamManager, stream: string, spec: ConsumerSpec) => {
  try {
    await createConsumer(jsm, stream, spec)
  } catch (error) {
    if (!(error instanceof JetStreamApiError && error.code === consumerExists)) throw error
    await updateConsumer(jsm, stream, spec)
  }
}

/**
 * A new stream of a cluster has no leader at first, and nobody responds to a publish. The client
 * waits 0 to 5 s between tries: 10 s together.
 */
const leaderRetries = 8

const written = new Set<number>([wrongLastSequence, wrongLastSequenceInFlight])

/** Writes the entry that every bucket has, into a bucket without one. */
const ensureMeta = async ({ js }: Nats["Service"], bucket: BucketName, unbuilt: boolean) => {
  const headers = natsHeaders()
  for (const [name, value] of Object.entries(neverExpires)) headers.set(name, value)
  await js
    .publish(
      bucketSubject(bucket, metaKey),
      JSON.stringify({ v: 1, ...(unbuilt ? { unbuilt } : {}) }),
      { expect: { lastSubjectSequence: 0 }, headers, retries: leaderRetries }
    )
    .catch((error: unknown) => {
      // Another process is writing it, or has.
      if (!(error instanceof JetStreamApiError && written.has(error.code))) throw error
    })
}

const declared = (which: ReadonlyArray<BucketName>): Readonly<Record<string, Sized>> =>
  Object.fromEntries([
    ...allStreams.map((spec) => [spec.name, streamConfig(spec)]),
    ...which.map((bucket) => [bucketStream(bucket), bucketConfig(bucket)])
  ])

const failed = (operation: string) => (cause: unknown) =>
  cause instanceof NoStorage ? cause : unavailable(operation)(cause)

/**
 * Creates or updates every stream, consumer and bucket. Several processes may do so at once.
 *
 * `bytesMax` has the limits that the operator set, by stream. Other streams and buckets keep the
 * limit that they have; new ones get that of their declaration, or less where the server has less
 * storage. Fails with NoStorage below 1/64 of it.
 *
 * `replicas`: copies of each at least; none loses copies.
 *
 * `which`: the buckets to create or update.
 */
export const provision = Effect.fnUntraced(function* (
  replicas: number,
  bytesMax: BytesMax = {},
  which: ReadonlyArray<BucketName> = bucketNames
) {
  const nats = yield* Nats
  const share = yield* Effect.tryPromise({
    try: async () => {
      const share = await ensureStreams(nats.jsm, declared(which), replicas, bytesMax)
      await Promise.all(
        consumers.map(({ consumer, stream }) => ensureConsumer(nats.jsm, stream.name, consumer))
      )
      await Promise.all(which.map((bucket) => ensureMeta(nats, bucket, false)))
      return share
    },
    catch: (cause) => limitFault(cause) ?? failed("provision")(cause)
  })
  if (share < 1)
    yield* Effect.logWarning(
      "JetStream has little storage: new streams and buckets got smaller limits than usual",
      { percent: Math.round(share * 100) }
    )
})

/** Makes the bucket `cache` if it is missing. */
export const ensureCache = Effect.fnUntraced(function* (replicas: number) {
  const nats = yield* Nats
  const name = bucketStream("cache")
  yield* Effect.tryPromise({
    try: async () => {
      await createWithin(nats.jsm, { missing: { [name]: bucketConfig("cache") } }, replicas, {})
      await ensureMeta(nats, "cache", false)
    },
    catch: failed("make cache")
  })
})

/**
 * Deletes a bucket and creates it empty with the same size, marked as unbuilt: the first step of a
 * rebuild.
 */
export const recreateBucket = Effect.fnUntraced(function* (bucket: BucketName, replicas: number) {
  const nats = yield* Nats
  yield* Effect.tryPromise({
    try: async () => {
      const name = bucketStream(bucket)
      const former = await findStream(nats.jsm, name)
      await nats.jsm.streams.delete(name).catch(unlessCode(streamNotFound))
      // Readers may take the former bucket as built a little longer.
      await sleep(2 * builtMillis)
      const named: BytesMax = former === undefined ? {} : { [name]: former.config.max_bytes }
      const missing = { [name]: bucketConfig(bucket) }
      await createWithin(nats.jsm, { missing }, replicas, named)
      await ensureMeta(nats, bucket, true)
    },
    catch: failed(`recreate ${bucket}`)
  })
})
