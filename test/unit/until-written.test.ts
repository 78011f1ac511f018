// Outcomes are written however long that takes: a push whose outcome is lost would be sent again
// every two minutes.
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { untilWritten } from "#delivery/jobs/writes.ts"
import { AppendConflict, unavailable } from "#nats/connection/errors.ts"

const hourMillis = 3_600_000

const write = Clock.currentTimeMillis.pipe(
  Effect.filterOrFail(
    (now) => now >= hourMillis,
    () => unavailable("append")(new Error("full"))
  )
)

it.effect("goes on for an hour", () =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(untilWritten(write))
    yield* TestClock.adjust("1 hour")
    assert.strictEqual(yield* Fiber.join(fiber), hourMillis)
  })
)

it.effect("ends at once where somebody else has written", () =>
  Effect.gen(function* () {
    const failure = yield* Effect.flip(
      untilWritten(Effect.fail(new AppendConflict({ subject: "s" })))
    )
    assert.instanceOf(failure, AppendConflict)
  })
)
