// Writes that a sent push must not lose: tried again for as long as NATS is away or full.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, leave } from "#nats/stream/consumer.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

const writtenAgain = Schedule.spaced("500 millis")

const waits = makeRateLimitedLog("outcomes cannot be written: pushes wait")

/**
 * Retries without end while NATS is away or full. For outcomes of pushes that were sent: without
 * its outcome, a push would be sent again with each delivery of the job.
 */
export const untilWritten = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E | NatsUnavailable, R>
) =>
  effect.pipe(
    Effect.tapError((error) =>
      error instanceof NatsUnavailable ? waits({ reason: String(error.cause) }) : Effect.void
    ),
    Effect.retry({ schedule: writtenAgain, while: ({ _tag }) => _tag === "NatsUnavailable" })
  )

/** AppendConflict: another worker owns this job now. Do not ack the message. */
export const conflictLeaves = <E, R>(
  effect: Effect.Effect<Ack, E, R>
): Effect.Effect<Ack, Exclude<E, AppendConflict>, R> =>
  Effect.catchIf(
    effect,
    (error): error is E & AppendConflict => error instanceof AppendConflict,
    () => Effect.succeed(leave)
  ) as Effect.Effect<Ack, Exclude<E, AppendConflict>, R>
