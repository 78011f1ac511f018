// The connectivity breaker of one push service: after failed connections to several subscriptions
// in a row, pushes wait instead of using up their attempts. Our own network may be the cause, so
// other workers are not told. Pure: callers give the time.
import { CircuitBreaker, type CircuitState } from "./circuit-breaker.ts"

/**
 * Different subscriptions without a response, in a row, that open the breaker. The same number of
 * pushes to fewer subscriptions only causes a warning.
 */
const failedInRowMax = 5

/** Open `firstMillis`, then twice as long with each failed probe, at most `maxMillis`. */
export class ConnectivityBreaker {
  readonly #firstMillis: number
  readonly #maxMillis: number
  readonly #circuit = new CircuitBreaker()
  readonly #failedInRow = new Set<string>()
  #pushesInRow = 0
  #millis: number
  #respondedAt = Number.NEGATIVE_INFINITY

  constructor(firstMillis: number, maxMillis: number) {
    this.#firstMillis = firstMillis
    this.#maxMillis = maxMillis
    this.#millis = firstMillis
  }

  stateAt(now: number): CircuitState {
    return this.#circuit.stateAt(now)
  }

  /** Undefined: a push may be sent; {@link probes} says that it is. Else the time to come back. */
  deferral(now: number): number | undefined {
    return this.#circuit.deferral(now)
  }

  /** Notes that a push is sent. Returns whether it is a probe, for which others wait. */
  probes(now: number): boolean {
    return this.#circuit.probes(now)
  }

  /** Notes that the last probe was not sent after all: the next push may be one. */
  giveBack(): void {
    this.#circuit.giveBack()
  }

  /** Notes a response of any status. Returns whether it ends the waiting, or a silence. */
  responded(now: number): boolean {
    this.#respondedAt = now
    if (this.#failedInRow.size > 0) this.#failedInRow.clear()
    this.#millis = this.#firstMillis
    const wasSilent = this.#pushesInRow >= failedInRowMax
    this.#pushesInRow = 0
    return this.#circuit.close() || wasSilent
  }

  /**
   * Notes that a push sent at `sentAt` got no response. "opens": the breaker opens with it.
   * "silent": a few subscriptions get no response, again and again.
   */
  failed(subscription: string, sentAt: number, now: number): "opens" | "silent" | undefined {
    const state = this.#circuit.stateAt(now)
    // Others got a response since then: one connection broke, with all the pushes on it.
    if (sentAt < this.#respondedAt) return undefined
    // The push was sent before the breaker opened, so its failure says nothing about now.
    if (state === "open") return undefined
    this.#pushesInRow += 1
    if (state === "closed" && this.#failedInRow.add(subscription).size < failedInRowMax)
      return this.#pushesInRow === failedInRowMax ? "silent" : undefined
    this.#failedInRow.clear()
    this.#circuit.open(Math.min(this.#millis, this.#maxMillis), now)
    this.#millis = Math.min(2 * this.#millis, this.#maxMillis)
    return state === "closed" ? "opens" : undefined
  }
}
