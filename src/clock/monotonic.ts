// The monotonic clock of a process. Waits within the process are measured by it: the clock of a
// machine may be wrong, and set forward or back at any moment.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

const nanosPerMilli = 1_000_000n

/**
 * Whole milliseconds since a moment that only this process knows. Runs on whatever sets the clock.
 */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos / nanosPerMilli)
)
