// Runs an effect once for all callers that want the same result at the same time.
//
// Effect's `Cache` with a lifetime of zero, and `cachedWithTTL`, join callers as well, but not as
// needed here: they interrupt an effect whose callers have all left. A client that asks, leaves and
// asks again would start work without an end, and nothing of it would be remembered. And they
// measure a lifetime by the clock of the service, which may be set back by hours: the result would
// be used for as much longer. So a result that is used later, too, is kept beside this, with a
// time of the monotonic clock.
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { SingleFlight } from "#basics/single-flight.ts"

export interface JoinedEffects<Key, A, E> {
  /** The effects that are under way. */
  readonly size: () => number
  /** How many callers wait for the effect of a key. */
  readonly callersOf: (key: Key) => number
  /**
   * The result of the effect of this key that is under way; runs `effect` if there is none. The
   * effect ends, whoever of its callers is interrupted.
   */
  readonly join: <R>(key: Key, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Joins effects by a key. They run in fibers of their own, until the scope closes. */
export const makeSingleFlight = <Key, A, E = never>() =>
  Effect.map(Effect.scope, (scope): JoinedEffects<Key, A, E> => {
    const flights = new SingleFlight<Key, Exit.Exit<A, E>>()
    return {
      size: () => flights.size,
      callersOf: (key) => flights.callersOf(key),
      join: <R>(key: Key, effect: Effect.Effect<A, E, R>) =>
        Effect.contextWith((context: Context.Context<R>) =>
          Effect.callback<A, E>((resume) => {
            const leave = flights.join(key, resume, (done) => {
              Fiber.runIn(Effect.runForkWith(context)(effect), scope).addObserver(done)
            })
            return Effect.sync(leave)
          })
        )
    }
  })
