// A semaphore that shares its permits among broadcasts. First come, first served, a small broadcast
// would wait for hundreds of pushes of a large one, and a fast one for those of a slow one.
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

interface Waiting {
  readonly permits: number
  readonly serve: () => void
}

export class FairSemaphore {
  #size: number
  #taken = 0
  readonly #held = new Map<number, number>()
  /** By broadcast. Of those that hold the same, the first one is next. */
  readonly #waiting = new Map<number, Array<Waiting>>()

  constructor(size: number) {
    this.#size = size
  }

  /**
   * Takes permits for a broadcast: when they are free, and no broadcast that waits holds fewer.
   * Uninterruptible, so that no permits are on their way to nobody.
   */
  take(broadcast: number, permits = 1): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      if (this.#waiting.size === 0 && this.#fits(permits)) {
        this.#give(broadcast, permits)
        return Effect.void
      }
      return Effect.uninterruptible(
        Effect.callback<void>((resume) => {
          this.#wait(broadcast, { permits, serve: () => resume(Effect.void) })
          // Permits may be free that were too few for the broadcast that was next so far.
          this.#serveSoon(fiber)
        })
      )
    })
  }

  release(broadcast: number, permits = 1): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      this.#give(broadcast, -permits)
      this.#serveSoon(fiber)
      return Effect.void
    })
  }

  /** Runs an effect with a permit for a broadcast. */
  withPermit<A, E, R>(broadcast: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // An interrupt that came during the wait counts only when the release is certain.
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(
        this.take(broadcast),
        Effect.ensuring(restore(effect), this.release(broadcast))
      )
    )
  }

  resize(size: number): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      this.#size = size
      this.#serveSoon(fiber)
      return Effect.void
    })
  }

  #fits(permits: number): boolean {
    return this.#taken + permits <= this.#size
  }

  #give(broadcast: number, permits: number): void {
    this.#taken += permits
    const held = (this.#held.get(broadcast) ?? 0) + permits
    if (held === 0) this.#held.delete(broadcast)
    else this.#held.set(broadcast, held)
  }

  #wait(broadcast: number, waiting: Waiting): void {
    const queue = this.#waiting.get(broadcast)
    if (queue === undefined) this.#waiting.set(broadcast, [waiting])
    else queue.push(waiting)
  }

  /** Undefined: nobody waits. */
  #next(): number | undefined {
    let next: number | undefined
    let least = Number.POSITIVE_INFINITY
    for (const broadcast of this.#waiting.keys()) {
      const held = this.#held.get(broadcast) ?? 0
      if (held < least) [next, least] = [broadcast, held]
    }
    return next
  }

  /**
   * A fiber that is served runs at once. Here, that might be within a callback of undici, which
   * would send the request that the fiber makes without its body.
   */
  #serveSoon(fiber: Fiber.Fiber<unknown, unknown>): void {
    if (this.#waiting.size > 0) fiber.currentDispatcher.scheduleTask(() => this.#serve(), 0)
  }

  #serve(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const queue = this.#waiting.get(next)!
      const { permits, serve } = queue[0]!
      // If others went first, a broadcast that needs many permits would never get them.
      if (!this.#fits(permits)) return
      queue.shift()
      this.#waiting.delete(next)
      if (queue.length > 0) this.#waiting.set(next, queue)
      this.#give(next, permits)
      serve()
    }
  }
}
