// How many lists of broadcasts may wait, of one caller and of all.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { afterEach, assert, describe, it } from "vitest"
import { inTurn, listsMax } from "#gateway/broadcasts/broadcast-list.ts"

describe("lists of broadcasts", () => {
  const running: Array<Fiber.Fiber<unknown, unknown>> = []
  afterEach(() => Effect.runPromise(Fiber.interruptAll(running.splice(0))))

  const wait = (user: string, count: number) => {
    for (let i = 0; i < count; i++) running.push(Effect.runFork(inTurn(user, Effect.never)))
  }
  const codeOf = async (user: string) => {
    const refused = Effect.flip(inTurn(user, Effect.void))
    const { body } = (await Effect.runPromise(refused)).response
    return (body as { readonly error_code: string }).error_code
  }

  it("of one caller are refused beyond 32, of all beyond 256", async () => {
    wait("ann", listsMax.ofOne)
    assert.equal(await codeOf("ann"), "too-many-at-once")
    for (let i = 1; i < listsMax.ofAll / listsMax.ofOne; i++) wait(`user${i}`, listsMax.ofOne)
    assert.equal(await codeOf("bob"), "unavailable")
  })

  it("of callers that left keep no place", async () => {
    wait("ann", listsMax.ofOne)
    await Effect.runPromise(Fiber.interruptAll(running.splice(0)))
    assert.isTrue(Exit.isSuccess(await Effect.runPromiseExit(inTurn("ann", Effect.void))))
  })
})
