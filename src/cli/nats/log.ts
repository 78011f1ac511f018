// Checks of verbs before and after they append to LOG: a full stream or bucket stores nothing, and
// the projection must have applied the message.
import * as Effect from "effect/Effect"
import { bucketState, type StreamState, streamState } from "#nats/admin/maintenance.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { BucketOf } from "#nats/kv/values.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { isFull, remedyOf } from "#nats/watch/space.ts"
import { type BucketName, bucketStream, type EntryKey } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import type { StreamSpec } from "#streams/spec.ts"
import { subjects } from "#streams/subjects.ts"
import { failed } from "../terminal/output.ts"

/** Fails with VerbFailed if there is no LOG. */
export const demandLog = Effect.gen(function* () {
  if ((yield* streamState(streams.log)) === undefined)
    return yield* failed(`this NATS has no stream ${streams.log.name}: start the service once`)
})

/** Fails with VerbFailed if LOG, the bucket that shows what is stored there, or `more` is full. */
export const demandRoom = Effect.fnUntraced(function* (
  bucket: BucketName,
  ...more: ReadonlyArray<StreamSpec>
) {
  const states: Array<readonly [string, StreamState | undefined]> = [
    [bucketStream(bucket), yield* bucketState(bucket)]
  ]
  for (const stream of [streams.log, ...more])
    states.push([stream.name, yield* streamState(stream)])
  for (const [stream, state] of states) {
    if (state === undefined || !isFull(state)) continue
    return yield* failed(`${stream} is full: ${remedyOf(stream)}`)
  }
})

/** Fails with VerbFailed if the message at `seq` is not applied to `key` in time. */
export const untilApplied = Effect.fnUntraced(function* <
  K extends EntryKey<"publishers" | "token"> | EntryKey<"registration">
>(bucket: BucketOf<K>, key: K, seq: number) {
  yield* reached(seq)
  const entry = yield* (yield* Buckets).get(bucket, key)
  const value = entry?.value as { readonly seq: number } | undefined
  if ((value?.seq ?? 0) < seq) return yield* failed(noRoom(bucketStream(bucket)))
})

/** Fails with VerbFailed if the message at `seq` is not applied in time, to any bucket. */
export const reachedInTime = Effect.fnUntraced(function* (seq: number) {
  const applied = yield* reached(seq)
  const [short] = applied.short ?? []
  return short === undefined ? applied : yield* failed(noRoom(bucketStream(short as BucketName)))
})

/** Waits until the buckets show the command at `seq`. Returns whether the projector rejected it. */
export const isRejected = Effect.fnUntraced(function* (seq: number) {
  const { refused = seq } = yield* reachedInTime(seq)
  if (refused < seq) return false
  return (yield* (yield* EventLog).last("log", subjects.rejected(seq))) !== undefined
})

const reached = Effect.fnUntraced(function* (seq: number) {
  const applied = (yield* Watermark).reached(seq, appliedMillis)
  return yield* Effect.catchReason(applied, "NatsUnavailable", "NotApplied", () =>
    Effect.fail(failed(notApplied))
  )
})

const notApplied =
  "this is in LOG, but no projection runs to apply it: it takes effect once a service runs"

const noRoom = (stream: string) =>
  `this is in LOG, but ${stream} has no room for it: it takes effect once there is room; ` +
  remedyOf(stream)
