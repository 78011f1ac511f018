// Who may send now: at most the window of a lane is under way, the others stand in line. A slowed lane has a short line, so that the pushes of
// a shard to other push services do not stand behind it: who does not fit waits in WORK.
import { Effect, Semaphore } from "effect"

/** Nobody who waits in WORK looks more often than this, or more seldom. */
const awayMillisMin = 1_000
const awayMillisMax = 60_000

/** For how long a push that found no place stays away: the older its broadcast, the longer its like have been many. */
export const awayMillis = (ageMillis: number): number =>
  Math.min(Math.max(awayMillisMin, ageMillis / 4), awayMillisMax)

/** `connections`: the widest window, and the longest line of a slowed lane. `windowNow` tells how many may be under way. */
export const makeLine = (connections: number, windowNow: () => number) => {
  const slots = Semaphore.makeUnsafe(connections)
  let window = connections
  let inside = 0

  const fit = Effect.suspend(() => {
    if (window === windowNow()) return Effect.void
    window = windowNow()
    return slots.resize(window)
  })

  return {
    isFull: (): boolean => windowNow() < connections && inside >= windowNow() + connections,

    /** Runs `effect` when it is its turn. */
    inTurn: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      Effect.suspend(() => {
        inside += 1
        const leave = Effect.suspend(() => {
          inside -= 1
          return fit
        })
        return Effect.andThen(fit, slots.withPermit(effect)).pipe(Effect.ensuring(leave))
      })
  }
}
