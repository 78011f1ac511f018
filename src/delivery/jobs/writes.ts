// How the messages are written that a push leads to. An outcome is written however long that takes.
// A write that follows from a stored outcome is postponed if it cannot be stored: the job is not
// acknowledged, and its next delivery finds the outcome and makes the write. So a full stream takes
// neither permits nor memory, and a crash loses nothing.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "#clock/clocks.ts"
import { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, hindered, leave } from "#nats/stream/consumer.ts"
import { Space } from "#nats/watch/space.ts"
import { factPostponed, type PostponedType } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

const again = Schedule.spaced("500 millis")
/** Longer than the election of a leader takes: 5 to 7 s. */
const unavailableMillisMax = 10_000
const laterMillisMin = 1_000
/** With room again, everything that was postponed is stored within this time. */
export const postponedMillisMax = 60_000

const warnOfWait = makeRateLimitedLog("outcomes cannot be written: pushes wait")
const warnOfPostponed = makeRateLimitedLog(
  "removals, strikes or retries cannot be stored: they are stored when that is possible again"
)

/**
 * Retries without end while NATS is away or full. For outcomes of pushes that were sent: without
 * its outcome, a push would be sent again with each delivery of the job.
 */
export const untilWritten = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E | NatsUnavailable, R>
) =>
  effect.pipe(
    Effect.tapError((error) =>
      error instanceof NatsUnavailable ? warnOfWait({ reason: String(error.cause) }) : Effect.void
    ),
    Effect.retry({ schedule: again, while: ({ _tag }) => _tag === "NatsUnavailable" })
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

/**
 * Makes a write that follows from an outcome; false: it is postponed. Without room that happens at
 * once; while NATS does not respond, after 10 s.
 */
export const storeOrPostpone = <R>(
  type: PostponedType,
  write: Effect.Effect<unknown, NatsUnavailable, R>
): Effect.Effect<boolean, never, R | Space> =>
  Effect.flatMap(monotonicMillis, (startedAt) =>
    Effect.retry(write, {
      schedule: again,
      while: ({ reason }) =>
        Effect.map(
          monotonicMillis,
          (now) => reason._tag !== "NoRoom" && now - startedAt < unavailableMillisMax
        )
    })
  ).pipe(
    Effect.as(true),
    Effect.catch((error) => postpone(type, error))
  )

const postpone = Effect.fnUntraced(function* (
  type: PostponedType,
  { cause, reason }: NatsUnavailable
) {
  factPostponed(type)
  if (reason._tag === "NoRoom") yield* (yield* Space).refused(reason.stream)
  yield* warnOfPostponed({ type, reason: String(cause) })
  return false
})

/** 1 s after the first delivery, then doubled times up to 60 s. */
export const postponedMillis = (deliveryCount: number): number =>
  Math.min(postponedMillisMax, laterMillisMin * 2 ** Math.min(16, deliveryCount - 1))

/** A job with postponed writes is delivered again. */
export const laterPostponed = (deliveryCount: number): Ack =>
  hindered(postponedMillis(deliveryCount), "what follows from an outcome cannot be stored")
