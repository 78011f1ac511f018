// Restarts a loop after each end or failure: without the loop its stage would stop.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/** Starts `run` again so long after each end, and logs failures. */
export const runForever = <E, R>(
  run: Effect.Effect<void, E, R>,
  after: "250 millis" | "500 millis",
  log: ReturnType<typeof makeRateLimitedLog>
): Effect.Effect<never, never, R> =>
  run.pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : log({ err: Cause.squash(cause) })
    ),
    Effect.repeat(Schedule.spaced(after)),
    Effect.andThen(Effect.never)
  )
