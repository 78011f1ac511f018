import { setImmediate as settled } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { FairSemaphore } from "#clock/fair-semaphore.ts"

/** `take` notes in `taken` whose turn came. */
const make = (size: number) => {
  const semaphore = new FairSemaphore<number>(size)
  const taken: Array<number> = []
  const take = (broadcast: number, permits?: number) =>
    void Effect.runFork(
      Effect.andThen(
        semaphore.take(broadcast, permits),
        Effect.sync(() => taken.push(broadcast))
      )
    )
  const release = (broadcast: number, permits?: number) =>
    void Effect.runFork(semaphore.release(broadcast, permits))
  return { semaphore, take, release, taken }
}

describe("a fair semaphore", () => {
  it("gives the next permit to a broadcast that holds none, however many others wait", async () => {
    const { release, take, taken } = make(4)
    for (let i = 0; i < 10; i++) take(1)
    take(2)
    await settled()
    assert.deepEqual(taken, [1, 1, 1, 1])
    release(1)
    await settled()
    assert.deepEqual(taken, [1, 1, 1, 1, 2])
  })

  it("shares the permits equally among broadcasts that wait", async () => {
    const { release, take, taken } = make(6)
    for (let i = 0; i < 20; i++) take(1)
    for (let i = 0; i < 20; i++) take(2)
    for (let i = 0; i < 20; i++) take(3)
    for (let i = 0; i < 4; i++) release(1)
    await settled()
    assert.deepEqual(taken.slice(6), [2, 3, 2, 3])
    for (const broadcast of [1, 2, 3, 1, 2, 3]) release(broadcast)
    await settled()
    assert.deepEqual(taken.slice(10), [1, 2, 3, 1, 2, 3])
  })

  it("keeps free permits for one that needs more, but not from one that holds fewer", async () => {
    const { release, take, taken } = make(10)
    take(1, 8)
    take(2, 1)
    take(2, 5)
    take(1, 1)
    await settled()
    assert.deepEqual(taken, [1, 2])
    take(3, 1)
    await settled()
    assert.deepEqual(taken, [1, 2, 3])
    release(1, 8)
    await settled()
    assert.deepEqual(taken, [1, 2, 3, 1, 2])
  })

  it("gives none while more are taken than its new size has, and some when it grows", async () => {
    const { release, semaphore, take, taken } = make(3)
    for (let i = 0; i < 6; i++) take(1)
    void Effect.runFork(semaphore.resize(1))
    release(1, 2)
    await settled()
    assert.lengthOf(taken, 3)
    release(1)
    await settled()
    assert.lengthOf(taken, 4)
    void Effect.runFork(semaphore.resize(3))
    await settled()
    assert.lengthOf(taken, 6)
  })

  it("does not run one that it serves within the release", async () => {
    const { semaphore, take, taken } = make(1)
    take(1)
    take(2)
    const released = Effect.sync(() => taken.push(0))
    void Effect.runFork(Effect.andThen(semaphore.release(1), released))
    await settled()
    assert.deepEqual(taken, [1, 0, 2])
  })

  it("keeps no permit of an effect that is interrupted while it waits for one", async () => {
    const { release, semaphore, take, taken } = make(1)
    take(1)
    const waiting = Effect.runFork(semaphore.withPermit(2, Effect.never))
    await settled()
    waiting.interruptUnsafe()
    release(1)
    await settled()
    take(3)
    await settled()
    assert.deepEqual(taken, [1, 3])
  })
})
