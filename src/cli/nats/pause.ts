// Nobody plans or delivers while buckets are made anew: a worker that reads half of a channel takes the other half for gone.
import { Clock, Effect } from "effect"
import { consumerState, pauseConsumer, resumeConsumer } from "#nats/admin/maintenance.ts"
import { topology } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { note } from "../terminal/note.ts"

/** How long a pause outlives whoever began it. A killed rebuild leaves half of the buckets: time enough to run it again. */
const pauseMillis = 60 * 60_000
const lookMillis = 100

const consumers = topology.streams.flatMap((stream: StreamSpec) =>
  Object.values<ConsumerSpec>(stream.consumers).map((consumer) => ({ stream, consumer }))
)
/** A worker reads buckets when it is given a message. After this long it has, or is dead; waiting retries count as in hand, and stay. */
const inHandMillis = Math.max(...consumers.map(({ consumer }) => consumer.ackWaitMillis))

const pauseAll = Effect.gen(function* () {
  const until = (yield* Clock.currentTimeMillis) + pauseMillis
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

const nothingInHand = Effect.gen(function* () {
  for (let told = false; ; told = true) {
    const states = yield* Effect.forEach(consumers, ({ consumer, stream }) =>
      consumerState(stream, consumer)
    )
    const inHand = states.reduce((sum, state) => sum + (state?.unanswered ?? 0), 0)
    if (inHand === 0) return
    if (!told)
      yield* note(
        `waiting until what is in hand (${inHand}) is answered, at most ${inHandMillis / 1000} s`
      )
    yield* Effect.sleep(lookMillis)
  }
})

/**
 * Pauses every durable consumer and waits until nothing is in hand. The end of the scope resumes them, unless `keep` has been run and `end`
 * has not: then the pause runs out by itself, an hour after it was last renewed. `held` renews it and never ends but by a failure.
 */
export const pauseWork = Effect.gen(function* () {
  let kept = false
  yield* Effect.acquireRelease(pauseAll, () =>
    Effect.suspend(() =>
      kept
        ? note("the buckets are half made: planning and delivery wait for an hour; run it again")
        : Effect.ignore(resumeAll)
    )
  )
  yield* nothingInHand.pipe(Effect.timeoutOption(inHandMillis))
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
