// Pauses planning and delivery while lost buckets are rebuilt: a worker that reads half of a
// channel would treat the other half as gone.
import * as Effect from "effect/Effect"
import { consumerState, pauseConsumer, resumeConsumer } from "#nats/admin/maintenance.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { consumers } from "#streams/index.ts"
import { note } from "../terminal/output.ts"

/**
 * How long a pause lasts without renewal: if a rebuild is killed, the operator has time to run it
 * again before work resumes on half of the buckets.
 */
const pauseMillis = 60 * 60_000
const lookMillis = 100

/**
 * Longest wait for messages without an acknowledgement. A worker reads the buckets when it gets a
 * message, within milliseconds; what it reads again after a failure, it reads within
 * `appliedMillis`. Retries that wait for their time count too, and may wait for
 * hours: they are not delivered before the pause ends.
 */
const unacknowledgedMillis = 5_000

const pauseAll = Effect.gen(function* () {
  // The server ends the pause by its own clock.
  const { serverMillis } = yield* readServerTime
  const until = serverMillis + pauseMillis
  yield* Effect.forEach(
    consumers,
    ({ consumer, stream }) => pauseConsumer(stream, consumer, until),
    { discard: true }
  )
})
const resumeAll = Effect.forEach(
  consumers,
  ({ consumer, stream }) => resumeConsumer(stream, consumer),
  { discard: true }
)

const nothingUnacknowledged = Effect.gen(function* () {
  for (let announced = false; ; announced = true) {
    const states = yield* Effect.forEach(consumers, ({ consumer, stream }) =>
      consumerState(stream, consumer)
    )
    const unacknowledged = states.reduce((sum, state) => sum + (state?.num_ack_pending ?? 0), 0)
    if (unacknowledged === 0) return
    if (!announced)
      yield* note(
        `waiting for ${unacknowledged} messages that workers have in hand, ` +
          `at most ${unacknowledgedMillis / 1000} s`
      )
    yield* Effect.sleep(lookMillis)
  }
})

/**
 * Pauses every durable consumer and waits until workers have no message. The end of the scope
 * resumes them, unless `keep` was run and `end` was not: then the pause ends an hour after its last
 * renewal. `held` renews the pause and ends only with a failure.
 */
export const pauseWork = Effect.gen(function* () {
  let kept = false
  yield* Effect.acquireRelease(pauseAll, () =>
    Effect.suspend(() =>
      kept
        ? note("the buckets are half built: planning and delivery wait for an hour; run it again")
        : Effect.ignore(resumeAll)
    )
  )
  yield* nothingUnacknowledged.pipe(Effect.timeoutOption(unacknowledgedMillis))
  return {
    keep: Effect.sync(() => {
      kept = true
    }),
    held: pauseAll.pipe(Effect.delay(pauseMillis / 3), Effect.forever),
    end: Effect.suspend(() => {
      kept = false
      return resumeAll
    })
  }
})
