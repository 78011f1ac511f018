import { setImmediate as settled } from "node:timers/promises"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { assert, describe, it } from "vitest"
import { OneByOne } from "#clock/one-by-one.ts"

const make = () => {
  const turns = new OneByOne<string>(2)
  const begun: Array<number> = []
  /** Runs until the returned function is called. */
  const run = (key: string, n: number, millis = 5_000, owner = "ann") => {
    const end = Deferred.makeUnsafe<void>()
    const effect = Effect.andThen(
      Effect.sync(() => begun.push(n)),
      Effect.as(Deferred.await(end), "ran")
    )
    const turn = { key, owner, millis }
    const fiber = Effect.runFork(turns.run(turn, effect, Effect.succeed("otherwise")))
    const result = () => Effect.runPromise(Fiber.join(fiber))
    return { fiber, result, end: () => Deferred.doneUnsafe(end, Effect.void) }
  }
  return { turns, begun, run }
}

describe("effects of one key", () => {
  it("run one after another, beside those of other keys", async () => {
    const { begun, run, turns } = make()
    const [a, b, c] = [run("x", 1), run("x", 2), run("y", 3)]
    await settled()
    assert.deepEqual(begun, [1, 3])
    a.end()
    c.end()
    await settled()
    assert.deepEqual([begun, turns.size], [[1, 3, 2], 1])
    b.end()
    assert.equal(await b.result(), "ran")
    assert.equal(turns.size, 0)
  })

  it("end otherwise after their time, and leave when they are interrupted", async () => {
    const { begun, run, turns } = make()
    const first = run("x", 1)
    const [late, left] = [run("x", 2, 5), run("x", 3)]
    assert.equal(await late.result(), "otherwise")
    await Effect.runPromise(Fiber.interrupt(left.fiber))
    first.end()
    assert.equal(await first.result(), "ran")
    assert.deepEqual([begun, turns.size], [[1], 0])
  })

  it("wait up to a number of each owner, on whatever keys", async () => {
    const { begun, run } = make()
    const firsts = [run("x", 1), run("y", 2)]
    const [one, other] = [run("x", 3), run("y", 4)]
    assert.equal(await run("x", 5).result(), "otherwise")
    const ofBen = run("x", 6, 5_000, "ben")
    // A key that is free is nothing to wait for.
    run("z", 7).end()
    for (const each of [...firsts, one, other, ofBen]) each.end()
    assert.equal(await ofBen.result(), "ran")
    assert.equal(await other.result(), "ran")
    assert.sameMembers(begun, [1, 2, 3, 4, 6, 7])
  })
})
