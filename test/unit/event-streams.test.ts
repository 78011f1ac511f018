// The bounds on streams of events of one process: how long each lasts, and how many there are.
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { TestClock } from "effect/testing"
import { asOneOf, demandStream } from "#gateway/broadcasts/events.ts"

/** The status with which another stream of a user is refused; undefined: it is not. */
const refusalOf = (user: string) =>
  demandStream(user).pipe(
    Effect.as(undefined),
    Effect.catch(({ response }) => Effect.succeed(response.status))
  )

const open = (user: string) => Effect.forkChild(asOneOf(user, Effect.never))

describe("a stream of events", () => {
  it.effect("ends after 15 minutes", () =>
    Effect.gen(function* () {
      const stream = yield* open("anna")
      yield* TestClock.adjust("899 seconds")
      assert.isUndefined(stream.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.equal(stream.pollUnsafe()?._tag, "Success")
    })
  )

  it.effect("is one of 256 of all users, and of four of its own", () =>
    Effect.gen(function* () {
      const streams = yield* Effect.forEach(Array.from({ length: 255 }), (_, i) =>
        open(`user${i % 64}`)
      )
      yield* TestClock.adjust("1 second")
      assert.equal(yield* refusalOf("user0"), 429)
      assert.isUndefined(yield* refusalOf("anna"))
      const last = yield* open("anna")
      yield* TestClock.adjust("1 second")
      assert.equal(yield* refusalOf("ben"), 503)
      yield* Fiber.interrupt(last)
      assert.isUndefined(yield* refusalOf("ben"))
      // Two that were let in at once: the one too many ends at once, and takes no place.
      yield* open("anna")
      const late = yield* open("ben")
      yield* TestClock.adjust("1 second")
      assert.equal(late.pollUnsafe()?._tag, "Success")
      yield* Effect.forEach(streams, Fiber.interrupt)
      assert.isUndefined(yield* refusalOf("ben"))
    })
  )
})
