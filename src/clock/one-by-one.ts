// Runs effects of one key one after another, and those of different keys at the same time.
//
// Effect's PartitionedSemaphore shares one number of permits among all keys.
import * as Effect from "effect/Effect"
import { makeShares, type Shares } from "#basics/limits.ts"
import { FairSemaphore } from "./fair-semaphore.ts"

/** Whose turn it is: of a key, and for an owner, for whom only so many wait, on whatever keys. */
interface Turn<Key> {
  readonly key: Key
  readonly owner: string
  /** How long it waits. */
  readonly millis: number
}

/** Effects that run instead of one whose time is over, and of one too many of its owner. */
interface Otherwise<A, E, R> {
  readonly late: Effect.Effect<A, E, R>
  readonly tooMany: Effect.Effect<A, E, R>
}

interface Queue {
  readonly semaphore: FairSemaphore<"any">
  /** The effects that run or wait. */
  size: number
}

export class OneByOne<Key> {
  readonly #queues = new Map<Key, Queue>()
  readonly #waiting: Shares

  /** `waitingMax`: effects of an owner that wait. */
  constructor(waitingMax: number) {
    this.#waiting = makeShares(waitingMax)
  }

  /** The keys of which an effect runs. */
  get size(): number {
    return this.#queues.size
  }

  run<A, E, R, B, F, S>(
    { key, millis, owner }: Turn<Key>,
    effect: Effect.Effect<A, E, R>,
    { late, tooMany }: Otherwise<B, F, S>
  ): Effect.Effect<A | B, E | F, R | S> {
    const turn = Effect.acquireUseRelease(
      Effect.sync(() => this.#enter(key)),
      ({ semaphore }) => semaphore.withPermitWithin("any", millis, effect, late),
      (queue) => Effect.sync(() => this.#leave(key, queue))
    )
    return Effect.suspend((): Effect.Effect<A | B, E | F, R | S> => {
      if (!this.#queues.has(key)) return turn
      if (!this.#waiting.take(owner, 1)) return tooMany
      return Effect.ensuring(
        turn,
        Effect.sync(() => this.#waiting.give(owner, 1))
      )
    })
  }

  #enter(key: Key): Queue {
    const queue = this.#queues.get(key) ?? { semaphore: new FairSemaphore(1), size: 0 }
    this.#queues.set(key, queue)
    queue.size += 1
    return queue
  }

  #leave(key: Key, queue: Queue): void {
    queue.size -= 1
    if (queue.size === 0) this.#queues.delete(key)
  }
}
