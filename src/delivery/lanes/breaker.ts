// The breaker of one push service and VAPID key: when our credentials are refused, pushes wait until a probe is taken. A fault of ours, or of the
// service, must never cost a subscriber. Pure: it knows the time only from its callers.
import { type GateState, makeGate } from "./gate.ts"

/** A 2xx this recent proves that our key is good: then a refusal may be one subscription's own trouble. */
const provenMillis = 10 * 60_000
/** With such proof, this many different subscriptions refused, and nothing accepted between them, are the service after all. */
const refusedInRowMax = 5
/** Subscriptions known to be refused alone; the oldest are forgotten beyond this. */
const loneMax = 1_000
export interface Breaker {
  /** For how many milliseconds it stays open; 0: it is closed, or a probe may pass. */
  readonly openMillis: (now: number) => number
  readonly stateAt: (now: number) => GateState
  /** Another worker's is open for so long (0: is closed, with a 2xx): then so is ours. Whether that changes anything. */
  readonly told: (openMillis: number, now: number) => boolean
  /** Undefined: send (what is sent while half-open is the probe). Else when to come back. */
  readonly admit: (now: number) => number | undefined
  /** Whether the credentials may be tried at all: not open, or half-open. */
  readonly passes: (now: number) => boolean
  /** A 2xx within the last ten minutes. */
  readonly proven: (now: number) => boolean
  /** A 2xx; true when it closes the breaker. */
  readonly accepted: (subscription: string, now: number) => boolean
  /** Refused with a fresh token too. `lone`: this subscription's own trouble. Else when to come back, and whether this one opened the breaker. */
  readonly refused: (
    subscription: string,
    now: number
  ) => "lone" | { readonly until: number; readonly opens: boolean }
}

/** `openMillis`: how long it stays open, unless told otherwise. */
export const makeBreaker = (openMillis: number): Breaker => {
  const gate = makeGate()
  let acceptedAt = Number.NEGATIVE_INFINITY
  const refusedInRow = new Set<string>()
  /** Refused while our key was proven. Tried again in a quiet hour, without a proof, they must not open the breaker for everybody. */
  const lone = new Set<string>()

  const passes = (now: number) => gate.stateAt(now) !== "open"
  const proven = (now: number) => {
    // With a clock set back an old proof would be good until the time comes again.
    acceptedAt = Math.min(acceptedAt, now)
    return now - acceptedAt < provenMillis
  }

  const close = (now: number) => {
    acceptedAt = now
    if (refusedInRow.size > 0) refusedInRow.clear()
    return gate.close()
  }

  return {
    passes,
    proven,
    admit: gate.admit,
    stateAt: gate.stateAt,
    accepted: (subscription, now) => {
      if (lone.size > 0) lone.delete(subscription)
      return close(now)
    },
    refused: (subscription, now) => {
      if (!passes(now)) return { until: gate.openUntil(now)!, opens: false }
      if (lone.has(subscription)) return "lone"
      refusedInRow.add(subscription)
      // A refused probe needs no more proof.
      if (gate.stateAt(now) === "closed" && proven(now) && refusedInRow.size < refusedInRowMax) {
        if (lone.size >= loneMax) lone.delete(lone.values().next().value!)
        lone.add(subscription)
        return "lone"
      }
      // So many in a row were not alone after all.
      if (refusedInRow.size >= refusedInRowMax) for (const each of refusedInRow) lone.delete(each)
      refusedInRow.clear()
      gate.open(openMillis, now)
      return { until: now + openMillis, opens: true }
    },
    openMillis: (now) => Math.max(0, (gate.openUntil(now) ?? now) - now),
    told: (millis, now) => {
      if (millis === 0) return close(now)
      if (!passes(now)) return false
      refusedInRow.clear()
      gate.open(Math.min(millis, openMillis), now)
      return true
    }
  }
}
