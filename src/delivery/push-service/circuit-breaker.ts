// A gate that closes for a while and then lets one probe through (half-open): what a breaker does, whatever it breaks for. "Open" is the word
// of circuit breakers: nothing flows. Pure: it knows the time only from its callers.

/** How long others wait for a probe; should its answer tell nothing, the next one probes. */
const probeMillisMin = 1_000

export type GateState = "closed" | "half-open" | "open"

export interface Gate {
  readonly stateAt: (now: number) => GateState
  /** Undefined: send (what is sent while half-open is the probe). Else when to come back. */
  readonly admit: (now: number) => number | undefined
  /** Lets nothing through for so long. */
  readonly open: (millis: number, now: number) => void
  /** Lets everything through; true when it did not before. */
  readonly close: () => boolean
  /** When probes may pass; undefined: it is closed. */
  readonly openUntil: (now: number) => number | undefined
}

export const makeCircuitBreaker = (): Gate => {
  let openUntil: number | undefined
  let openMillis = 0
  let probeMillis = probeMillisMin
  let probedUntil = 0

  /** A clock set back makes no wait longer than it was meant to be. */
  const until = (now: number) => {
    if (openUntil !== undefined) openUntil = Math.min(openUntil, now + openMillis)
    probedUntil = Math.min(probedUntil, now + probeMillis)
    return openUntil
  }

  return {
    stateAt: (now) => {
      const end = until(now)
      return end === undefined ? "closed" : now < end ? "open" : "half-open"
    },
    admit: (now) => {
      const end = until(now)
      if (end === undefined) return undefined
      if (now < end) return end
      if (now < probedUntil) return probedUntil
      probedUntil = now + probeMillis
      return undefined
    },
    open: (millis, now) => {
      openUntil = now + millis
      openMillis = millis
      probeMillis = Math.max(probeMillisMin, millis / 10)
      probedUntil = 0
    },
    close: () => {
      const closes = openUntil !== undefined
      openUntil = undefined
      return closes
    },
    openUntil: until
  }
}
