import { setImmediate as settled } from "node:timers/promises"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
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

  it("lets one that is interrupted, or waited long enough, leave without a permit", async () => {
    const semaphore = new FairSemaphore<number>(1)
    const run = (owner: number, millis: number, effect: Effect.Effect<unknown>) =>
      Effect.runFork(semaphore.withPermitWithin(owner, millis, effect, Effect.succeed("too late")))
    const holder = run(1, 60_000, Effect.never)
    const left = run(2, 60_000, Effect.succeed("never"))
    await Effect.runPromise(Fiber.interrupt(left))
    assert.equal(await Effect.runPromise(Fiber.join(run(3, 1, Effect.void))), "too late")
    const next = run(4, 60_000, Effect.succeed("in turn"))
    await Effect.runPromise(Fiber.interrupt(holder))
    assert.equal(await Effect.runPromise(Fiber.join(next)), "in turn")
    // A permit that was lost would let nobody in any more.
    assert.equal(await Effect.runPromise(Fiber.join(run(5, 1, Effect.succeed("free")))), "free")
  })

  it("takes all or none within a time, and then lets others have what it waited for", async () => {
    const { release, semaphore, take, taken } = make(4)
    const within = (permits: number, millis: number) =>
      Effect.runPromise(semaphore.takeWithin(0, permits, millis))
    take(1, 3)
    const late = within(2, 1)
    take(2)
    assert.isFalse(await late)
    await settled()
    assert.deepEqual(taken, [1, 2])
    const inTime = within(2, 60_000)
    release(1, 3)
    assert.isTrue(await inTime)
    take(3, 2)
    await settled()
    assert.deepEqual(taken, [1, 2], "two are taken, and one by 2")
    release(0, 2)
    await settled()
    assert.deepEqual(taken, [1, 2, 3])
  })

  it("loses no permit when the turn comes with the interrupt", async () => {
    const semaphore = new FairSemaphore<number>(1)
    for (let i = 0; i < 20; i++) {
      await Effect.runPromise(semaphore.take(1))
      const waits = semaphore.withPermitWithin(2, 60_000, Effect.never, Effect.void)
      const fiber = Effect.runFork(waits)
      for (let turns = 0; turns < i % 3; turns++) await settled()
      await Effect.runPromise(semaphore.release(1))
      for (let turns = 0; turns < i % 2; turns++) await settled()
      await Effect.runPromise(Fiber.interrupt(fiber))
    }
    const free = semaphore.withPermitWithin(3, 1, Effect.succeed("free"), Effect.succeed("lost"))
    assert.equal(await Effect.runPromise(free), "free")
  })
})
