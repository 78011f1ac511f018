// Who may send now: at most the window of a lane is under way, the others stand in line. A slowed lane has a short line, so that the pushes of
// a shard to other push services do not stand behind it: who does not fit waits in WORK.
import { Effect, Semaphore } from "effect"

/** Nobody who waits in WORK looks more often than this, or more seldom. */
const awayMillisMin = 1_000
const awayMillisMax = 60_000

/** For how long a push that found no place stays away: the older its broadcast, the longer its like have been many. */
export const awayMillis = (ageMillis: number): number =>
  Math.min(Math.max(awayMillisMin, ageMillis / 4), awayMillisMax)

/** The longest queue of a slowed push service. */
const queueMax = 64

/**
 * `max`: the widest window. `windowNow` returns how many may
 * be under way, `isSlowed` whether the push service takes fewer than it could.
 */
export const makeQueue = (max: number, windowNow: () => number, isSlowed: () => boolean) => {
  const slots = Semaphore.makeUnsafe(max)
  let window = max
  let inside = 0

  const resized = (room: () => number) =>
    Effect.suspend(() => {
      const wanted = Math.max(1, Math.min(windowNow(), room()))
      if (window === wanted) return Effect.void
      window = wanted
      return slots.resize(window)
    })

  return {
    isFull: (): boolean => isSlowed() && inside >= windowNow() + Math.min(queueMax, max),

    /** Whether pushes wait for others to end. */
    isWaiting: (): boolean => inside > window,

    /** Runs `effect` when it is its turn. `room`: pushes that the connections carry. */
    inTurn: <A, E, R>(room: () => number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        inside += 1
        const leave = Effect.suspend(() => {
          inside -= 1
          return resized(room)
        })
        return Effect.andThen(resized(room), slots.withPermit(effect)).pipe(Effect.ensuring(leave))
      })
  }
}
