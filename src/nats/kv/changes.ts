// Follows the changes of a bucket: their keys and revisions, in order and without a gap.
import { type ConsumerMessages, DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream"
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, bucketSubject } from "#streams/buckets.ts"
import { attempt, type NatsUnavailable } from "../connection/errors.ts"
import { pullWithin } from "../stream/pull.ts"

const changesInFlight = 1_024
const expiresMillis = 5_000

/** Events of nats.js after which changes may be missing, or the bucket may be another one. */
const gaps: ReadonlyArray<string> = ["ordered_consumer_recreated", "stream_not_found"]

/** Keys of pages with owners have two tokens, all others of that bucket one. Nobody needs them. */
const changedKeys = (bucket: BucketName) => (bucket === "subscriptions" ? "*" : ">")

const open = async (js: JetStreamClient, bucket: BucketName, after: number) => {
  const consumer = await js.consumers.get(bucketStream(bucket), {
    filter_subjects: [bucketSubject(bucket, changedKeys(bucket))],
    headers_only: true,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: after + 1
  })
  const max_messages = await pullWithin(consumer, changesInFlight)
  return consumer.consume({ max_messages, expires: expiresMillis })
}

/** Calls `changed` for every change. Rejects when changes may be missing. */
const readAll = async (
  messages: ConsumerMessages,
  prefix: string,
  changed: (key: string, revision: number) => void
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
  for await (const msg of messages) changed(msg.subject.slice(prefix.length), msg.seq)
  throw new Error(why)
}

/** See `Buckets.changes`. */
export const changes = (
  js: JetStreamClient,
  bucket: BucketName,
  after: number,
  changed: (key: string, revision: number) => void
): Effect.Effect<never, NatsUnavailable> => {
  const operation = `changes of ${bucket}`
  return Effect.acquireUseRelease(
    attempt(operation, () => open(js, bucket, after)),
    (messages) => attempt(operation, () => readAll(messages, bucketSubject(bucket, ""), changed)),
    (messages) =>
      Effect.promise(() => messages.close()).pipe(Effect.timeoutOption("1 second"), Effect.ignore)
  )
}
