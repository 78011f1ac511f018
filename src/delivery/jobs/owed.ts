// Writes that follow from a recorded outcome: removals, strikes and retries. One that cannot be
// stored is owed: its job is not acknowledged, and its next delivery finds the outcome and makes
// the write. So a full stream holds neither permits nor memory, and a crash loses nothing.
import { Effect, Schedule } from "effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { MessageType } from "#domain/messages.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, later } from "#nats/stream/consumer.ts"
import { Space } from "#nats/watch/space.ts"
import { factPostponed } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/** Longer than the election of a leader takes: 5 to 7 s. */
const patienceMillis = 10_000
const again = Schedule.spaced("500 millis")

const owedMillisMin = 1_000
/** With room again, everything that is owed is stored within this time. */
const owedMillisMax = 60_000

/** A job that owes writes: delivered again after 1 s, then after doubled times up to a minute. */
export const laterOwed = (deliveryCount: number): Ack =>
  later(Math.min(owedMillisMax, owedMillisMin * 2 ** Math.min(16, deliveryCount - 1)))

/** Makes a write; false: it is owed. */
export type StoredOrOwed = (
  type: MessageType,
  write: Effect.Effect<unknown, NatsUnavailable>
) => Effect.Effect<boolean>

/** Without room a write is owed at once; while NATS does not respond, after 10 s. */
export const makeStoredOrOwed = Effect.gen(function* () {
  const space = yield* Space
  const warn = makeRateLimitedLog(
    "removals, strikes or retries cannot be stored: they are stored when that is possible again"
  )
  const patiently = (write: Effect.Effect<unknown, NatsUnavailable>) =>
    Effect.flatMap(monotonicMillis, (startedAt) =>
      Effect.retry(write, {
        schedule: again,
        while: ({ reason }) =>
          Effect.map(
            monotonicMillis,
            (now) => reason._tag !== "NoRoom" && now - startedAt < patienceMillis
          )
      })
    )
  const owe = Effect.fnUntraced(function* (type: MessageType, { cause, reason }: NatsUnavailable) {
    factPostponed(type)
    if (reason._tag === "NoRoom") yield* space.refused(reason.stream)
    yield* warn({ type, reason: String(cause) })
    return false
  })
  const storedOrOwed: StoredOrOwed = (type, write) =>
    patiently(write).pipe(
      Effect.as(true),
      Effect.catch((error) => owe(type, error))
    )
  return storedOrOwed
})

/** Makes writes at the same time; false: at least one is owed. */
export const allStored = (writes: ReadonlyArray<Effect.Effect<boolean>>): Effect.Effect<boolean> =>
  Effect.map(Effect.all(writes, { concurrency: 32 }), (stored) => !stored.includes(false))
