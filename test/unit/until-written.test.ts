// What was sent is written down, however long that takes: a push whose outcome was given up would be sent again every two minutes.
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { untilWritten } from "#delivery/record.ts"
import { AppendConflict, LogUnavailable } from "#log/errors.ts"

/** Full for a night. */
const write = Effect.flatMap(Clock.currentTimeMillis, (now) =>
  now < 8 * 3_600_000 ? Effect.fail(new LogUnavailable({ operation: "append", cause: new Error("full") })) : Effect.succeed(now)
)

it.effect("goes on for a night", () =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(untilWritten(write))
    yield* TestClock.adjust("8 hours")
    assert.strictEqual(yield* Fiber.join(fiber), 8 * 3_600_000)
  })
)

it.effect("ends at once where somebody else has written", () =>
  Effect.gen(function* () {
    const failure = yield* Effect.flip(untilWritten(Effect.fail(new AppendConflict({ subject: "s" }))))
    assert.instanceOf(failure, AppendConflict)
  })
)
