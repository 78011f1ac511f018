// Waits until the projection has applied what a verb appended to LOG.
import { Effect } from "effect"
import { Watermark } from "#nats/follower/watermark.ts"
import { VerbFailed } from "./nats.ts"

/** How long the projection may take to apply a change. */
const appliedMillis = 5_000

const notApplied =
  "this is in LOG, but no projection runs to apply it: it takes effect once a service runs"

/** Fails with VerbFailed if the message at `seq` is not applied in time. */
export const untilApplied = Effect.fnUntraced(function* (seq: number) {
  yield* (yield* Watermark)
    .reached(seq, appliedMillis)
    .pipe(
      Effect.catchReason("NatsUnavailable", "NotApplied", () =>
        Effect.fail(new VerbFailed({ message: notApplied }))
      )
    )
})
