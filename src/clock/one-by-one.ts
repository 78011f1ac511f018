// Runs effects of one key one after another, and those of different keys at the same time.
//
// Effect's PartitionedSemaphore shares one number of permits among all keys.
import * as Effect from "effect/Effect"
import { makeShares, type Shares } from "#basics/limits.ts"
import { FairSemaphore } from "./fair-semaphore.ts"

interface Turn<Key> {
  /** Effects of one key run one after another. */
  readonly key: Key
  /** Only so many effects of an owner wait, whatever their keys are. */
  readonly owner: string
  /** How long an effect waits. */
  readonly millis: number
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

  /** `otherwise`: runs where the time is over, and where too many wait. */
  run<A, E, R, B, F, S>(
    { key, millis, owner }: Turn<Key>,
    effect: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, F, S>
  ): Effect.Effect<A | B, E | F, R | S> {
    const turn = Effect.acquireUseRelease(
      Effect.sync(() => this.#enter(key)),
      ({ semaphore }) => semaphore.withPermitWithin("any", millis, effect, otherwise),
      (queue) => Effect.sync(() => this.#leave(key, queue))
    )
    return Effect.suspend((): Effect.Effect<A | B, E | F, R | S> => {
      if (!this.#queues.has(key)) return turn
      if (!this.#waiting.take(owner, 1)) return otherwise
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
