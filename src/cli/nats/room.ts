// Verbs store nothing that a full stream or bucket has no room for, and say how to make it larger.
import * as Effect from "effect/Effect"
import { bucketState, type StreamState, streamState } from "#nats/admin/maintenance.ts"
import { remedyOf } from "#nats/watch/fullness.ts"
import { isFull } from "#nats/watch/space.ts"
import { type BucketName, bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import type { StreamSpec } from "#streams/spec.ts"
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
