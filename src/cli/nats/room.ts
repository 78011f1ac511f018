// Verbs store nothing that a full stream or bucket has no room for, and say how to make it larger.
import { Effect } from "effect"
import { bucketState, streamState } from "#nats/admin/maintenance.ts"
import { remedyOf } from "#nats/watch/fullness.ts"
import { isFull } from "#nats/watch/space.ts"
import { type BucketName, bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { VerbFailed } from "./nats.ts"

/** Fails with VerbFailed if LOG, or the bucket that shows what is stored there, is full. */
export const demandRoom = Effect.fnUntraced(function* (bucket: BucketName) {
  const states = [
    [streams.log.name, yield* streamState(streams.log)],
    [bucketStream(bucket), yield* bucketState(bucket)]
  ] as const
  for (const [stream, state] of states) {
    if (state === undefined || !isFull(state)) continue
    return yield* new VerbFailed({ message: `${stream} is full: ${remedyOf(stream)}` })
  }
})
