// Callers that want the same at the same time: one fetch for all of them.
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { makeSingleFlight } from "#clock/single-flight.ts"

class Refused extends Error {
  readonly _tag = "Refused"
}

/** Joins effects that wait until they are ended, and counts them. */
const make = Effect.gen(function* () {
  const flights = yield* makeSingleFlight<string, string, Refused>()
  const begun: Array<Deferred.Deferred<string, Refused>> = []
  const join = (key: string) =>
    flights.join(
      key,
      Effect.suspend(() => {
        const end = Deferred.makeUnsafe<string, Refused>()
        begun.push(end)
        return Deferred.await(end)
      })
    )
  const start = (key: string) => Effect.forkChild(join(key), { startImmediately: true })
  return { begun, flights, join, start }
})

describe("callers that want the same", () => {
  it.effect("get the result of one fetch, and others one of their own", () =>
    Effect.gen(function* () {
      const { begun, flights, start } = yield* make
      const both = [yield* start("a"), yield* start("a")]
      const other = yield* start("b")
      assert.strictEqual(begun.length, 2)
      assert.deepStrictEqual([flights.callersOf("a"), flights.callersOf("b")], [2, 1])
      yield* Deferred.succeed(begun[1]!, "of b")
      assert.strictEqual(yield* Fiber.join(other), "of b")
      assert.deepStrictEqual([flights.callersOf("a"), flights.size()], [2, 1])
      yield* Deferred.succeed(begun[0]!, "of a")
      assert.deepStrictEqual(yield* Effect.forEach(both, Fiber.join), ["of a", "of a"])
      assert.strictEqual(flights.size(), 0)
    }).pipe(Effect.scoped)
  )

  it.effect("get its failure, and the next caller begins again", () =>
    Effect.gen(function* () {
      const { begun, join, start } = yield* make
      const both = [yield* start("a"), yield* start("a")]
      yield* Deferred.fail(begun[0]!, new Refused())
      for (const each of both) {
        const failure = yield* Effect.flip(Fiber.join(each))
        assert.strictEqual(failure._tag, "Refused")
      }
      const next = yield* Effect.forkChild(join("a"), { startImmediately: true })
      yield* Deferred.succeed(begun[1]!, "at last")
      assert.strictEqual(yield* Fiber.join(next), "at last")
    }).pipe(Effect.scoped)
  )

  it.effect("may all leave: it goes on, and those who come back find it", () =>
    Effect.gen(function* () {
      const { begun, flights, start } = yield* make
      const first = yield* start("a")
      const second = yield* start("a")
      yield* Fiber.interrupt(first)
      yield* Fiber.interrupt(second)
      assert.deepStrictEqual([flights.callersOf("a"), flights.size()], [0, 1])
      const third = yield* start("a")
      assert.strictEqual(begun.length, 1)
      yield* Deferred.succeed(begun[0]!, "of a")
      assert.strictEqual(yield* Fiber.join(third), "of a")
    }).pipe(Effect.scoped)
  )

  it.effect("get a result that is there at once", () =>
    Effect.gen(function* () {
      const flights = yield* makeSingleFlight<string, number>()
      assert.strictEqual(yield* flights.join("a", Effect.succeed(1)), 1)
      assert.strictEqual(yield* flights.join("a", Effect.succeed(2)), 2)
      assert.strictEqual(flights.size(), 0)
    }).pipe(Effect.scoped)
  )

  it.effect("are interrupted with it when its scope closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const { flights, start } = yield* Scope.provide(make, scope)
      const waiting = yield* start("a")
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(waiting)))
      assert.strictEqual(flights.size(), 0)
    })
  )
})
