// The send queue of one push service: at most its window of pushes is under way, the others wait
// here. The queue of a slowed push service is short, so that pushes of the same shard to other push
// services do not wait behind it. A push that does not fit waits in WORK.
import * as Effect from "effect/Effect"
import { FairSemaphore } from "#clock/fair-semaphore.ts"

/** Delay before a push that did not fit is tried again: at least 1 s, at most 60 s. */
const fullMillisMin = 1_000
const fullMillisMax = 60_000

/**
 * Returns that delay: a quarter of the broadcast's age. An older broadcast has waited longer
 * already.
 */
export const fullMillis = (ageMillis: number): number =>
  Math.min(Math.max(fullMillisMin, ageMillis / 4), fullMillisMax)

/** The longest queue of a slowed push service. */
const queueMax = 64

/**
 * `max`: the widest window. `windowNow` returns how many pushes may be under way, `isSlowed`
 * whether the push service allows fewer than are needed.
 */
export const makeQueue = (max: number, windowNow: () => number, isSlowed: () => boolean) => {
  const slots = new FairSemaphore<number>(max)
  let window = max
  /** Pushes that wait or are under way. */
  let inside = 0

  const resized = Effect.suspend(() => {
    const wanted = Math.max(1, windowNow())
    if (window === wanted) return Effect.void
    window = wanted
    return slots.resize(window)
  })

  return {
    isFull: (): boolean => isSlowed() && inside >= windowNow() + Math.min(queueMax, max),

    /** Whether pushes wait for others to end. */
    isWaiting: (): boolean => inside > window,

    /** Runs `effect` when it and its broadcast have their turn. It has a place until its end. */
    withPlace: <A, E, R>(broadcast: number, effect: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        inside += 1
        const leave = Effect.suspend(() => {
          inside -= 1
          return resized
        })
        return Effect.andThen(resized, slots.withPermit(broadcast, effect)).pipe(
          Effect.ensuring(leave)
        )
      })
  }
}
