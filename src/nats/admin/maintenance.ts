// Administration for the commands of operators and the start of the service: states of streams,
// buckets and consumers, pauses, and emptying buckets.
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, metaKey, projections } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import {
  attempt,
  codeOf,
  isNotFound,
  type NatsUnavailable,
  StartRefused,
  unavailable
} from "../connection/errors.ts"
import { Buckets } from "../kv/bucket.ts"
import { readOr } from "../kv/entries.ts"
import type { Meta } from "../kv/values.ts"
import { consumerInfo, formKey, infoOf, makingKey } from "../stream/info.ts"
import { countDirect } from "../stream/read-direct.ts"
import { createConsumer, recreateBucket } from "./provision.ts"

const requestMillis = 5_000

/** Undefined: the server has no such stream, consumer or message. */
const ask = <A>(
  operation: string,
  run: (nats: Nats["Service"]) => Promise<A>
): Effect.Effect<A | undefined, NatsUnavailable, Nats> =>
  Effect.flatMap(Nats, (nats) =>
    attempt(operation, () =>
      run(nats).catch((error: unknown) => {
        if (isNotFound(error)) return undefined
        throw error
      })
    )
  )

export interface StreamState {
  readonly messages: number
  readonly bytes: number
  /** Limit of `bytes`. */
  readonly bytesMax: number
  /** Of the first message that is left; without any, one more than `lastSeq`. */
  readonly firstSeq: number
  readonly lastSeq: number
  /**
   * When it was created, or its first message stored, which a restored one has from before; in
   * milliseconds since the epoch.
   */
  readonly begunAt: number
  readonly replicas: number
  /** The form of what it stores (`storedForm`). Undefined: made by no version of Bellcast. */
  readonly form: string | undefined
  /** Of LOG: the form in which buckets are made again now. Undefined: they are not. */
  readonly making: string | undefined
}

const stateOf = Effect.fnUntraced(function* (name: string) {
  const info = yield* infoOf(yield* Nats, name)
  if (info === undefined) return undefined
  const { config, created, state } = info
  const firstTimes = state.messages === 0 ? [created] : [created, state.first_ts]
  const found: StreamState = {
    messages: state.messages,
    bytes: state.bytes,
    bytesMax: config.max_bytes,
    firstSeq: state.first_seq,
    lastSeq: state.last_seq,
    begunAt: Math.min(...firstTimes.map(Date.parse)),
    replicas: config.num_replicas,
    form: config.metadata?.[formKey],
    making: config.metadata?.[makingKey]
  }
  return found
})

export const streamState = (stream: StreamSpec) => stateOf(stream.name)
export const bucketState = (bucket: BucketName) => stateOf(bucketStream(bucket))

/**
 * Notes in the metadata of LOG in which form the buckets are made again. Processes of another form
 * end then, and no start takes what is there for complete. Undefined: they are made.
 */
export const noteMaking = Effect.fnUntraced(function* (form: string | undefined) {
  const nats = yield* Nats
  const { name } = streams.log
  const { [makingKey]: former, ...metadata } = (yield* infoOf(nats, name))?.config.metadata ?? {}
  if (former === form) return
  const noted = form === undefined ? metadata : { ...metadata, [makingKey]: form }
  yield* attempt(`note in ${name}`, () => nats.jsm.streams.update(name, { metadata: noted }))
})

/**
 * Fails if LOG has commands and a bucket that shows them is gone. An empty new bucket would lack
 * everything up to the checkpoint, which may be in another bucket: registrations would be lost.
 */
export const refuseMissingBuckets = Effect.gen(function* () {
  if (((yield* streamState(streams.log))?.lastSeq ?? 0) === 0) return
  const missing: Array<string> = []
  for (const bucket of projections) {
    const state = yield* bucketState(bucket)
    const meta =
      state && (yield* readOr((yield* Buckets).get(bucket, metaKey), { value: { unbuilt: true } }))
    if (state === undefined || meta?.value.unbuilt === true) missing.push(bucketStream(bucket))
  }
  if (missing.length === 0) return
  return yield* new StartRefused({
    message:
      `${streams.log.name} holds commands, but ${missing.join(", ")} is gone: ` +
      "run `bellcast rebuild`"
  })
})

export const consumerState = (stream: StreamSpec, { name }: ConsumerSpec) =>
  Effect.flatMap(Nats, (nats) =>
    Effect.mapError(consumerInfo(nats, stream.name, name), unavailable(`state of ${name}`))
  )

/** Warns at start that planning and delivery are paused: a killed rebuild leaves them so. */
export const warnOfPause = Effect.gen(function* () {
  const { deliver } = streams.work.consumers
  const { pause_remaining = 0 } = (yield* consumerState(streams.work, deliver)) ?? {}
  if (pause_remaining > 0)
    yield* Effect.logWarning(
      "planning and delivery wait for a rebuild: if none is running, one ended half-way; " +
        "run `bellcast rebuild`",
      { minutes: Math.ceil(pause_remaining / 60e9) }
    )
})

/** Number of messages after `seq` that the filters match. */
export const countAfter = (stream: StreamSpec, filters: ReadonlyArray<string>, seq: number) =>
  ask(`count in ${stream.name}`, async (nats) => {
    let count = 0
    for (const filter of filters) count += await countDirect(nats, stream.name, filter, seq + 1)
    return count
  })

/**
 * Stops the deliveries of a consumer until a time in milliseconds since the epoch. Workers keep the
 * messages that they have.
 */
export const pauseConsumer = (stream: StreamSpec, { name }: ConsumerSpec, until: number) =>
  ask(`pause ${name}`, ({ jsm }) => jsm.consumers.pause(stream.name, name, new Date(until)))

/** Ends the pause of a consumer. */
export const resumeConsumer = (stream: StreamSpec, { name }: ConsumerSpec) =>
  ask(`resume ${name}`, ({ jsm }) => jsm.consumers.resume(stream.name, name))

/**
 * Delivers again from a sequence on, whatever was acknowledged. The server refuses to reset
 * (ADR-60) to before the start of a consumer that was made again: then the consumer is replaced.
 */
export const resetConsumer = (stream: StreamSpec, spec: ConsumerSpec, seq: number) =>
  Effect.flatMap(Nats, ({ jsm, request }) =>
    request(
      `CONSUMER.RESET.${stream.name}.${spec.name}`,
      JSON.stringify({ seq }),
      requestMillis
    ).pipe(
      Effect.catchIf(
        (failure) => codeOf(failure) !== undefined,
        () =>
          Effect.tryPromise(async () => {
            await jsm.consumers.delete(stream.name, spec.name)
            await createConsumer(jsm, stream.name, spec, seq)
          })
      ),
      Effect.mapError(unavailable(`reset ${spec.name}`))
    )
  )

/** Removes all messages that a filter matches. */
export const purgeSubjects = (stream: StreamSpec, filter: string) =>
  ask(`purge ${stream.name}`, ({ jsm }) => jsm.streams.purge(stream.name, { filter }))

/**
 * Deletes a bucket and creates it empty, marked as unbuilt, with what is `kept` of its `meta`. Its
 * revisions continue above those of the former bucket and above `minRevision`: jobs in WORK wait
 * for revisions of the former bucket.
 */
export const emptyBucket = Effect.fnUntraced(function* (
  bucket: BucketName,
  replicas: number,
  minRevision: number,
  kept: Partial<Meta> = {}
) {
  const buckets = yield* Buckets
  const last = Math.max(1, minRevision, (yield* bucketState(bucket))?.lastSeq ?? 0)
  yield* recreateBucket(bucket, replicas)
  yield* ask(`empty ${bucket}`, ({ jsm }) =>
    jsm.streams.purge(bucketStream(bucket), { seq: last + 1 })
  )
  yield* buckets.put(bucket, metaKey, { v: 1, unbuilt: true, ...kept }, 0)
})
