// A circuit breaker: it stops pushes for a while, then lets single probes through (half-open).
// Pure: callers give the time.

/** Other pushes wait this long for a probe. If its response proves nothing, the next one probes. */
const probeMillisMin = 1_000

/** Open: nothing is sent. Half-open: probes are. */
export type CircuitState = "closed" | "half-open" | "open"

export class CircuitBreaker {
  #openUntil: number | undefined
  #probeMillis = probeMillisMin
  #probedUntil = 0

  stateAt(now: number): CircuitState {
    const end = this.#openUntil
    return end === undefined ? "closed" : now < end ? "open" : "half-open"
  }

  /** Undefined: send the push (while half-open, as a probe). Else the time to come back. */
  admit(now: number): number | undefined {
    const end = this.#openUntil
    if (end === undefined) return undefined
    if (now < end) return end
    if (now < this.#probedUntil) return this.#probedUntil
    this.#probedUntil = now + this.#probeMillis
    return undefined
  }

  open(millis: number, now: number): void {
    this.#openUntil = now + millis
    this.#probeMillis = Math.max(probeMillisMin, millis / 10)
    this.#probedUntil = 0
  }

  /** Returns whether it was not closed before. */
  close(): boolean {
    const closes = this.#openUntil !== undefined
    this.#openUntil = undefined
    return closes
  }

  /** Returns the time from which probes may pass; undefined while closed. */
  get openUntil(): number | undefined {
    return this.#openUntil
  }
}
