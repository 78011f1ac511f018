// When a push service that sends too much is left alone, whatever it responds between. Pure:
// callers give the time, by the monotonic clock.

/** A block begins with this many connections that received too much within a minute. */
const excessesMax = 5
const excessesMillis = 60_000
/** The first block; each further one is twice as long. */
const firstMillis = 10_000
const maxMillis = 10 * 60_000
/** After a block the next excess blocks again, until there was none for so long. */
const forgetMillis = 60 * 60_000

export class Penalty {
  #excesses: ReadonlyArray<number> = []
  #lastAt = Number.NEGATIVE_INFINITY
  /** Length of the last block; 0: none. */
  #millis = 0
  #blockedUntil = Number.NEGATIVE_INFINITY

  isBlocked(now: number): boolean {
    return now < this.#blockedUntil
  }

  /** Notes that a connection received too much. Returns whether a block begins with it. */
  note(now: number): boolean {
    if (now - this.#lastAt > forgetMillis) this.#millis = 0
    this.#lastAt = now
    if (this.isBlocked(now)) return false
    this.#excesses = [...this.#excesses.filter((at) => now - at < excessesMillis), now]
    if (this.#millis === 0 && this.#excesses.length < excessesMax) return false
    this.#millis = Math.min(Math.max(firstMillis, 2 * this.#millis), maxMillis)
    this.#blockedUntil = now + this.#millis
    this.#excesses = []
    return true
  }
}
