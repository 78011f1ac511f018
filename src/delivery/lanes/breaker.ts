// The breaker of one push service and VAPID key: when our credentials are refused, pushes wait until a probe is taken. A fault of ours, or of the
// service, must never cost a subscriber. Pure: it knows the time only from its callers.

/** A 2xx this recent proves that our key is good: then a refusal may be one subscription's own trouble. */
const provenMillis = 10 * 60_000
/** With such proof, this many different subscriptions refused, and nothing accepted between them, are the service after all. */
const refusedInRowMax = 5
/** How long others wait for a probe; should its answer tell nothing, the next one probes. */
const probeMillisMin = 1_000

export interface Breaker {
  /** Undefined: send (what is sent while half-open is the probe). Else when to come back. */
  readonly admit: (now: number) => number | undefined
  /** Whether the credentials may be tried at all: not open, or half-open. */
  readonly passes: (now: number) => boolean
  /** A 2xx within the last ten minutes. */
  readonly proven: (now: number) => boolean
  /** A 2xx; true when it closes the breaker. */
  readonly accepted: (now: number) => boolean
  /** Refused with a fresh token too. `lone`: this subscription's own trouble. Else when to come back, and whether this one opened the breaker. */
  readonly refused: (subscription: string, now: number) => "lone" | { readonly until: number; readonly opens: boolean }
}

export const makeBreaker = (openMillis: number): Breaker => {
  let openUntil: number | undefined
  let probedUntil = 0
  let acceptedAt = Number.NEGATIVE_INFINITY
  const refusedInRow = new Set<string>()

  const passes = (now: number) => openUntil === undefined || now >= openUntil
  const proven = (now: number) => now - acceptedAt < provenMillis

  return {
    passes,
    proven,
    admit: (now) => {
      if (openUntil === undefined) return undefined
      if (now < openUntil) return openUntil
      if (now < probedUntil) return probedUntil
      probedUntil = now + Math.max(probeMillisMin, openMillis / 10)
      return undefined
    },
    accepted: (now) => {
      const closes = openUntil !== undefined
      openUntil = undefined
      acceptedAt = now
      if (refusedInRow.size > 0) refusedInRow.clear()
      return closes
    },
    refused: (subscription, now) => {
      if (openUntil !== undefined && now < openUntil) return { until: openUntil, opens: false }
      refusedInRow.add(subscription)
      // A refused probe needs no more proof.
      if (openUntil === undefined && proven(now) && refusedInRow.size < refusedInRowMax) return "lone"
      refusedInRow.clear()
      openUntil = now + openMillis
      probedUntil = 0
      return { until: openUntil, opens: true }
    }
  }
}
