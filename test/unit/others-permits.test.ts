// The permits that a process keeps for others, taken while its own pushes go on.
import { setImmediate as turn } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { OthersPermits } from "#delivery/jobs/record.ts"

const whole = 64
const ofOthers = 48
const stuck = 40

it.effect("pushes go on until others have their permits, and none is lost", () =>
  Effect.gen(function* () {
    const permits = new FairSemaphore<number>(whole)
    const others = new OthersPermits(permits, whole)
    let begun = 0
    let underWay = 0
    const push = Effect.gen(function* () {
      begun += 1
      underWay += 1
      yield* Effect.sleep(10)
      underWay -= 1
    })
    const pass = Effect.fnUntraced(function* (seconds: number) {
      for (let n = 0; n < 100 * seconds; n++) {
        yield* TestClock.adjust(10)
        yield* Effect.promise(() => turn())
      }
    })
    // Pushes to a push service that does not respond, and those of a broadcast to another one.
    yield* permits.take(1, stuck)
    for (let n = 0; n < whole; n++)
      yield* Effect.forkScoped(Effect.forever(permits.withPermit(2, push)))
    // Pushes that wait for a permit cannot be interrupted.
    yield* Effect.addFinalizer(() => permits.resize(2 * whole))
    yield* pass(1)
    assert.equal(underWay, whole - stuck)

    const kept = yield* Effect.forkScoped(others.keep(ofOthers))
    for (let seconds = 3; seconds <= 9; seconds += 3) {
      const before = begun
      yield* pass(3)
      assert.isAbove(begun, before, `none began in the three seconds before ${seconds}`)
    }
    assert.isUndefined(kept.pollUnsafe(), "others begin once all their permits are taken")
    yield* permits.release(1, stuck)
    yield* pass(10)
    assert.isDefined(kept.pollUnsafe())
    yield* Fiber.join(kept)
    assert.equal(underWay, whole - ofOthers)

    yield* others.keep(0)
    yield* pass(1)
    assert.equal(underWay, whole)
  })
)
