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

/** After a long turn of the event loop, timers fire early. */
const earlyMillisMax = 50

/**
 * Waits until a whole multiple of `everyMillis`, for 50 ms at least. So the periodic work of a
 * process runs together: each time that an idle process wakes costs 0.2 ms of CPU.
 */
export const nextMultiple = (everyMillis: number): Effect.Effect<void> =>
  Effect.flatMap(monotonicMillis, (now) => {
    const left = everyMillis - (now % everyMillis)
    return Effect.sleep(left < earlyMillisMax ? left + everyMillis : left)
  })
