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

  /** Undefined: a push may be sent; {@link probes} says that it is. Else the time to come back. */
  deferral(now: number): number | undefined {
    const end = this.#openUntil
    if (end === undefined) return undefined
    if (now < end) return end
    return now < this.#probedUntil ? this.#probedUntil : undefined
  }

  /** Notes that a push is sent. Returns whether it is a probe, for which others wait. */
  probes(now: number): boolean {
    if (this.#openUntil === undefined) return false
    this.#probedUntil = now + this.#probeMillis
    return true
  }

  /** Notes that the last probe was not sent after all: the next push may be one. */
  giveBack(): void {
    this.#probedUntil = 0
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
