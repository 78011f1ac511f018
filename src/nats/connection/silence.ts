// Streams that do not acknowledge writes. After an error of its disk, a stream of nats-server
// answers reads and stays silent on writes until the server is restarted, also with space again.

/** Fewer writes without a response may have other reasons. */
const writesMin = 3
/** Without writes for so long, nobody knows whether the stream is still silent. */
const forgottenMillis = 60_000
/** Twice the longest time-out: a write that was given up later waited in a frozen process. */
const lateMillis = 10_000

interface Silence {
  /** When the first write without a response since the last response was sent. */
  readonly since: number
  /** When the last such write was given up. */
  readonly last: number
  readonly writes: number
}

/** The streams that give no response to writes of a connection. Times: those of `performance`. */
export class Silences {
  readonly #silences = new Map<string, Silence>()
  #connectedAt = Number.NEGATIVE_INFINITY

  /** Notes a write that ended: with a response of any kind, or without. */
  note(stream: string, isAnswered: boolean, sentAt: number, now = performance.now()): void {
    if (isAnswered) {
      this.#silences.delete(stream)
      return
    }
    if (sentAt < this.#connectedAt || now - sentAt > lateMillis) return
    const { since, writes } = this.#silences.get(stream) ?? { since: sentAt, writes: 0 }
    this.#silences.set(stream, { since, last: now, writes: writes + 1 })
  }

  /** A new connection: a write that was sent before says nothing about the server. */
  connected(now = performance.now()): void {
    this.#connectedAt = now
    this.#silences.clear()
  }

  /**
   * The streams that acknowledged no write for longer than this time: the last one that was given
   * up counts, as nobody knows what became of a stream that nobody wrote to since.
   */
  longerThan(millis: number, now = performance.now()): ReadonlyArray<string> {
    return [...this.#silences].flatMap(([stream, { last, since, writes }]) =>
      writes >= writesMin && last - since > millis && now - last < forgottenMillis ? [stream] : []
    )
  }
}
