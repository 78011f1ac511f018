// Lists of subscriptions take turns: one caller's many lists let those of others through.
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Call } from "#gateway/http/request.ts"
import { inTurn, listsAtOnce } from "#gateway/subscriptions/subscription-list.ts"

const callOf = (user: string, verified = true, address = "192.0.2.1") =>
  ({ caller: { user, verified }, request: { address } }) as unknown as Call

const hold = (call: Call, count: number) =>
  Effect.forEach(Array.from({ length: count }), () =>
    Effect.forkScoped(inTurn(call, Effect.never), { startImmediately: true })
  )

describe("lists of subscriptions", () => {
  it.effect("of one caller do not keep another one waiting", () =>
    Effect.gen(function* () {
      const held = yield* hold(callOf("ann"), listsAtOnce)
      yield* hold(callOf("ann"), 5)
      const other = yield* Effect.forkScoped(inTurn(callOf("bob"), Effect.succeed("bob")))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(held[0]!)
      assert.strictEqual(yield* Fiber.join(other), "bob")
    }).pipe(Effect.scoped)
  )

  it.effect("of made-up callers of one address count as those of one", () =>
    Effect.gen(function* () {
      const held = yield* Effect.forEach(
        Array.from({ length: listsAtOnce + 5 }, (_, n) => callOf(`made-up-${n}`, false)),
        (call) => hold(call, 1)
      )
      const other = callOf("bob", false, "192.0.2.2")
      const list = yield* Effect.forkScoped(inTurn(other, Effect.succeed("bob")))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(held[0]![0]!)
      assert.strictEqual(yield* Fiber.join(list), "bob")
    }).pipe(Effect.scoped)
  )

  it.effect("whose turn does not come in 10 s are refused", () =>
    Effect.gen(function* () {
      yield* hold(callOf("ann"), listsAtOnce)
      const late = yield* Effect.forkScoped(Effect.flip(inTurn(callOf("bob"), Effect.void)))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(late)).response.status, 503)
    }).pipe(Effect.scoped)
  )
})
