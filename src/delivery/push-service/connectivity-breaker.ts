// Whether a push service can be reached from here: when no answer comes to several subscriptions in a row, pushes wait instead of using up
// their attempts. What it sees may be our own network, so other workers are not told. Pure: it knows the time only from its callers.
import { type GateState, makeCircuitBreaker } from "./circuit-breaker.ts"

/** So many different subscriptions without an answer, and none between them; or, to be told of but no more, so many pushes. */
const failedInRowMax = 5

export interface Reach {
  readonly stateAt: (now: number) => GateState
  /** Undefined: send. Else when to come back. */
  readonly admit: (now: number) => number | undefined
  /** An answer, whatever it says; true when it ends the waiting, or a silence. */
  readonly answered: (now: number) => boolean
  /**
   * No answer to a push sent at `sentAt`. "waits": with this one the waiting begins. "silent": it is only a
   * few subscriptions that get none, but time and again.
   */
  readonly failed: (
    subscription: string,
    sentAt: number,
    now: number
  ) => "waits" | "silent" | undefined
}

/** Waits `firstMillis`, then, as long as probes fail, twice as long each time, at most `maxMillis`. */
export const makeConnectivityBreaker = (firstMillis: number, maxMillis: number): Reach => {
  const gate = makeCircuitBreaker()
  const failedInRow = new Set<string>()
  let pushesInRow = 0
  let millis = firstMillis
  let answeredAt = Number.NEGATIVE_INFINITY

  return {
    stateAt: gate.stateAt,
    admit: gate.admit,
    answered: (now) => {
      answeredAt = now
      if (failedInRow.size > 0) failedInRow.clear()
      millis = firstMillis
      const isSilent = pushesInRow >= failedInRowMax
      pushesInRow = 0
      return gate.close() || isSilent
    },
    failed: (subscription, sentAt, now) => {
      const state = gate.stateAt(now)
      // A clock set back makes no answer younger than now.
      answeredAt = Math.min(answeredAt, now)
      // Others were answered since: one connection broke, with all the pushes on it.
      if (sentAt < answeredAt) return undefined
      // Sent before.
      if (state === "open") return undefined
      pushesInRow += 1
      if (state === "closed" && failedInRow.add(subscription).size < failedInRowMax)
        return pushesInRow === failedInRowMax ? "silent" : undefined
      failedInRow.clear()
      gate.open(Math.min(millis, maxMillis), now)
      millis = Math.min(2 * millis, maxMillis)
      return state === "closed" ? "waits" : undefined
    }
  }
}
