// How long ago a message was stored, by a clock that is set back meanwhile.
import { assert, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { ServiceClock } from "#clock/clocks.ts"
import { Elapsed } from "#delivery/elapsed.ts"

const hour = 60 * 60_000

it.effect("passes although the clock of the service is set back", () =>
  Effect.gen(function* () {
    const base = yield* Clock.Clock
    const clock = new ServiceClock(base)
    const elapsed = yield* Elapsed
    const since = (message: string, at: number) =>
      Effect.provideService(elapsed.since(message, at), Clock.Clock, clock)
    const now = clock.currentTimeMillisUnsafe()
    const storedAt = now - 1_000
    assert.strictEqual(yield* since("a", storedAt), 1_000, "also before this process asked")
    const monotonic = Number(base.monotonicTimeNanosUnsafe() / 1_000_000n)
    clock.follow({ serverMillis: now - hour, began: monotonic, ended: monotonic })
    assert.isBelow(clock.currentTimeMillisUnsafe() - storedAt, 0)
    yield* TestClock.adjust("30 seconds")
    assert.strictEqual(yield* since("a", storedAt), 30_000)
    assert.strictEqual(yield* since("b", storedAt), 0, "each message by itself")
  }).pipe(Effect.provide(Elapsed.layer))
)
