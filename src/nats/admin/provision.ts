// Makes the server match streams/: creates missing streams, consumers and buckets, updates those
// that differ, deletes none.
import {
  AckPolicy,
  type ConsumerConfig,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  type StreamConfig
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import { Effect } from "effect"
import { type BucketName, bucketStream, bucketSubject, buckets, metaKey } from "#streams/buckets.ts"
import { topology } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import { unavailable } from "../connection/errors.ts"

const nameInUse = 10058
const streamNotFound = 10059
const consumerExists = 10148

/**
 * Pull requests that wait at one consumer. nats-server cannot change this limit after the creation,
 * so it is far above what processes need.
 */
const waitingMax = 16_384

const streamConfig = (spec: StreamSpec, replicas: number, bytesMax: number) => ({
  name: spec.name,
  subjects: [...spec.subjects],
  max_age: nanos(spec.maxAgeMillis),
  max_bytes: bytesMax,
  max_msg_size: spec.maxMessageBytes,
  duplicate_window: nanos(spec.duplicateWindowMillis),
  deny_purge: spec.denyPurge,
  discard: DiscardPolicy.New,
  allow_atomic: true,
  allow_direct: true,
  num_replicas: replicas
})

const bucketConfig = (bucket: BucketName, replicas: number, bytesMax: number) => ({
  name: bucketStream(bucket),
  subjects: [bucketSubject(bucket, ">")],
  max_msgs_per_subject: 1,
  max_age: nanos(buckets[bucket].ttlMillis),
  max_bytes: bytesMax,
  max_msg_size: buckets[bucket].maxValueBytes,
  discard: buckets[bucket].forgets ? DiscardPolicy.Old : DiscardPolicy.New,
  allow_atomic: true,
  allow_rollup_hdrs: true,
  allow_direct: true,
  allow_msg_ttl: true,
  num_replicas: replicas
})

/** `keepsSize`: an existing stream keeps its limit of bytes. */
const ensureStream = async (
  jsm: JetStreamManager,
  config: Partial<StreamConfig> & { name: string },
  keepsSize: boolean
) => {
  try {
    await jsm.streams.add(config)
  } catch (error) {
    if (!(error instanceof JetStreamApiError && error.code === nameInUse)) throw error
    const { max_bytes: _, ...unsized } = config
    await jsm.streams.update(config.name, keepsSize ? unsized : config)
  }
}

const ensureConsumer = async (jsm: JetStreamManager, stream: string, spec: ConsumerSpec) => {
  const config: Partial<ConsumerConfig> = {
    durable_name: spec.name,
    filter_subjects: [...spec.filters],
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(spec.ackWaitMillis),
    max_deliver: spec.maxDeliver,
    max_ack_pending: spec.maxAckPending
  }
  try {
    await jsm.consumers.add(stream, { ...config, max_waiting: waitingMax })
  } catch (error) {
    if (!(error instanceof JetStreamApiError && error.code === consumerExists)) throw error
    await jsm.consumers.update(stream, spec.name, config)
  }
}

const ensureBucket = async (
  { js, jsm }: Nats["Service"],
  bucket: BucketName,
  replicas: number,
  unbuilt: boolean,
  bytesMax: number = buckets[bucket].maxBytes
) => {
  await ensureStream(jsm, bucketConfig(bucket, replicas, bytesMax), true)
  await js
    .publish(
      bucketSubject(bucket, metaKey),
      JSON.stringify({ v: 1, ...(unbuilt ? { unbuilt } : {}) }),
      {
        expect: { lastSubjectSequence: 0 }
      }
    )
    .catch((error: unknown) => {
      if (!(error instanceof JetStreamApiError)) throw error
    })
}

/**
 * Creates or updates every stream, consumer and bucket. Several processes may do so at once.
 *
 * `bytesMax` has the limits of streams by name. Other streams and all buckets keep the limit that
 * they have, which an operator may have raised; new ones get that of their declaration.
 *
 * `unbuilt`: marks new buckets as lacking what the streams have, until a rebuild empties them.
 */
export const provision = Effect.fnUntraced(function* (
  replicas: number,
  bytesMax: Readonly<Record<string, number>> = {},
  unbuilt = false
) {
  const nats = yield* Nats
  yield* Effect.tryPromise({
    try: async () => {
      for (const stream of topology.streams) {
        const named = bytesMax[stream.name]
        await ensureStream(
          nats.jsm,
          streamConfig(stream, replicas, named ?? stream.maxBytes),
          named === undefined
        )
        await Promise.all(
          Object.values<ConsumerSpec>(stream.consumers).map((consumer) =>
            ensureConsumer(nats.jsm, stream.name, consumer)
          )
        )
      }
      await Promise.all(
        (Object.keys(buckets) as Array<BucketName>).map((bucket) =>
          ensureBucket(nats, bucket, replicas, unbuilt)
        )
      )
    },
    catch: unavailable("provision")
  })
})

/** Deletes a bucket and creates it empty with the same size: the first step of a rebuild. */
export const recreateBucket = Effect.fnUntraced(function* (bucket: BucketName, replicas: number) {
  const nats = yield* Nats
  yield* Effect.tryPromise({
    try: async () => {
      const unlessMissing = (error: unknown) => {
        if (!(error instanceof JetStreamApiError && error.code === streamNotFound)) throw error
      }
      const former = await nats.jsm.streams.info(bucketStream(bucket)).catch(unlessMissing)
      await nats.jsm.streams.delete(bucketStream(bucket)).catch(unlessMissing)
      await ensureBucket(nats, bucket, replicas, false, former?.config.max_bytes)
    },
    catch: unavailable(`recreate ${bucket}`)
  })
})
