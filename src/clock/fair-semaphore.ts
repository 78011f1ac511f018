// A semaphore that shares its permits among owners, such as broadcasts or callers. First come,
// first served, a small broadcast would wait for hundreds of pushes of a large one, a fast one for
// those of a slow one, and a caller for all requests of another one.
//
// Effect's PartitionedSemaphore takes turns among owners whatever each has already, cannot be
// resized, and resumes who waits within the release (see `#serveSoon`).
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

interface Waiting {
  readonly permits: number
  readonly serve: () => void
}

export class FairSemaphore<Owner> {
  #size: number
  #taken = 0
  readonly #takenBy = new Map<Owner, number>()
  /** By owner. Of those that have taken the same, the first one is next. */
  readonly #waiting = new Map<Owner, Array<Waiting>>()

  constructor(size: number) {
    this.#size = size
  }

  /** Whether somebody waits for permits. */
  get isWaitedFor(): boolean {
    return this.#waiting.size > 0
  }

  /**
   * Takes permits for an owner: when they are free, and no owner that waits has fewer.
   * Uninterruptible, so that no permits are on their way to nobody.
   */
  take(owner: Owner, permits = 1): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      if (this.#waiting.size === 0 && this.#fits(permits)) {
        this.#give(owner, permits)
        return Effect.void
      }
      return Effect.uninterruptible(
        Effect.callback<void>((resume) => {
          this.#wait(owner, { permits, serve: () => resume(Effect.void) })
          // Permits may be free that were too few for the owner that was next so far.
          this.#serveSoon(fiber)
        })
      )
    })
  }

  release(owner: Owner, permits = 1): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      this.#give(owner, -permits)
      this.#serveSoon(fiber)
      return Effect.void
    })
  }

  /** Runs an effect with a permit for an owner. */
  withPermit<A, E, R>(owner: Owner, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    // An interrupt that came during the wait counts only when the release is certain.
    return Effect.uninterruptibleMask((restore) =>
      Effect.andThen(this.take(owner), Effect.ensuring(restore(effect), this.release(owner)))
    )
  }

  /**
   * As `withPermit`, but an owner whose turn has not come in that time gets `otherwise` instead,
   * and one that is interrupted leaves the queue.
   */
  withPermitWithin<A, E, R, B, F, S>(
    owner: Owner,
    millis: number,
    effect: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, F, S>
  ): Effect.Effect<A | B, E | F, R | S> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        this.#within(restore, owner, 1, millis),
        (isServed): Effect.Effect<A | B, E | F, R | S> =>
          isServed ? Effect.ensuring(restore(effect), this.release(owner)) : restore(otherwise)
      )
    )
  }

  /**
   * As `take`, but false, and nothing taken, if the turn has not come in that time. It may be
   * interrupted, and takes nothing then.
   */
  takeWithin(owner: Owner, permits: number, millis: number): Effect.Effect<boolean> {
    return Effect.uninterruptibleMask((restore) => this.#within(restore, owner, permits, millis))
  }

  resize(size: number): Effect.Effect<void> {
    return Effect.withFiber((fiber) => {
      this.#size = size
      this.#serveSoon(fiber)
      return Effect.void
    })
  }

  /** Whether the turn came in that time. Run it uninterruptibly: only the wait is `restore`d. */
  #within(
    restore: (wait: Effect.Effect<unknown>) => Effect.Effect<unknown>,
    owner: Owner,
    permits: number,
    millis: number
  ): Effect.Effect<boolean> {
    return Effect.withFiber((fiber) => {
      if (this.#waiting.size === 0 && this.#fits(permits)) {
        this.#give(owner, permits)
        return Effect.succeed(true)
      }
      let isServed = false
      let resume = () => {}
      const serve = () => {
        isServed = true
        resume()
      }
      const waiting = { permits, serve }
      this.#wait(owner, waiting)
      this.#serveSoon(fiber)
      const turn = Effect.callback<void>((resumed) => {
        resume = () => resumed(Effect.void)
        if (isServed) resume()
      })
      // A turn may come in the same moment as the interrupt or the end of the time.
      const given = Effect.suspend(() =>
        isServed
          ? this.release(owner, permits)
          : Effect.sync(() => this.#leave(owner, waiting, fiber))
      )
      return restore(Effect.timeoutOption(turn, millis)).pipe(
        Effect.onInterrupt(() => given),
        Effect.flatMap(() => (isServed ? Effect.succeed(true) : Effect.as(given, false)))
      )
    })
  }

  #fits(permits: number): boolean {
    return this.#taken + permits <= this.#size
  }

  #give(owner: Owner, permits: number): void {
    this.#taken += permits
    const taken = (this.#takenBy.get(owner) ?? 0) + permits
    if (taken === 0) this.#takenBy.delete(owner)
    else this.#takenBy.set(owner, taken)
  }

  #wait(owner: Owner, waiting: Waiting): void {
    const queue = this.#waiting.get(owner)
    if (queue === undefined) this.#waiting.set(owner, [waiting])
    else queue.push(waiting)
  }

  #leave(owner: Owner, waiting: Waiting, fiber: Fiber.Fiber<unknown, unknown>): void {
    const left = (this.#waiting.get(owner) ?? []).filter((each) => each !== waiting)
    if (left.length > 0) this.#waiting.set(owner, left)
    else this.#waiting.delete(owner)
    // Permits may be free that were too few for the one that left.
    this.#serveSoon(fiber)
  }

  /** Undefined: nobody waits. */
  #next(): Owner | undefined {
    let next: Owner | undefined
    let least = Number.POSITIVE_INFINITY
    for (const owner of this.#waiting.keys()) {
      const taken = this.#takenBy.get(owner) ?? 0
      if (taken < least) [next, least] = [owner, taken]
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
      // If others went first, an owner that needs many permits would never get them.
      if (!this.#fits(permits)) return
      queue.shift()
      this.#waiting.delete(next)
      if (queue.length > 0) this.#waiting.set(next, queue)
      this.#give(next, permits)
      serve()
    }
  }
}
