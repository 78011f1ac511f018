// The index of broadcasts that wait for their start.
import { Effect, Fiber, Layer } from "effect"
import { assert, it } from "vitest"
import { States } from "#broadcasts/states.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { startNats } from "../support/nats.ts"

const addScheduled = Effect.fnUntraced(function* (broadcast: number, inMillis: number) {
  const at = new Date(Date.now() + inMillis).toISOString()
  yield* (yield* EventLog).once("log", {
    subject: subjects.state(broadcast),
    type: "broadcast.scheduled",
    body: { broadcast, channel: "news", run: 0, by: "nats:test", at: 1, schedule: { at } }
  })
})

it("wakes the planner for broadcasts that start soon, and not for each of the others", async () => {
  await using nats = await startNats()
  const program = Effect.gen(function* () {
    const states = yield* States
    yield* states.known
    assert.lengthOf(yield* states.scheduled, 0)
    const woken = yield* Effect.forkChild(states.scheduling, { startImmediately: true })
    yield* addScheduled(1, 3_600_000)
    const poll = Effect.andThen(Effect.sleep(20), states.scheduled)
    // The second is known only after the first could have woken somebody.
    yield* addScheduled(3, 3_600_000)
    const known = Effect.repeat(poll, { until: ({ length }) => length === 2 })
    yield* Effect.timeout(known, "10 seconds")
    assert.isUndefined(woken.pollUnsafe())
    yield* addScheduled(2, 500)
    yield* Effect.timeout(Fiber.join(woken), "10 seconds")
    assert.lengthOf(yield* states.scheduled, 3)
  })
  const services = natsLayer({ url: nats.url, name: "test" })
  const ready = Layer.effectDiscard(provision(1)).pipe(Layer.provideMerge(services))
  await Effect.runPromise(
    program.pipe(Effect.provide(States.layer.pipe(Layer.provideMerge(ready))))
  )
})
