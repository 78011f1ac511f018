// The clocks of a process. A wait within the process is measured by the monotonic clock: the clock
// of a machine may be wrong, and set forward or back at any moment.
import { Clock, Effect } from "effect"

const nanosPerMilli = 1e6

/** Milliseconds since a moment that only this process knows. Runs on whatever sets the clock. */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos) / nanosPerMilli
)
