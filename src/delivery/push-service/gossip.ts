// Gossip: what workers publish to each other about push services, on core NATS. Every worker can
// find it out by itself, so a lost message costs only time. It names a push service and a VAPID
// key, never an endpoint. It has durations, not times: clocks differ.
import * as Schema from "effect/Schema"

const Count = Schema.Int.pipe(Schema.check(Schema.isGreaterThanOrEqualTo(0)))

export const Gossip = Schema.Struct({
  /** The version of this form. */
  v: Schema.Literal(1),
  /** The publisher: every worker receives its own messages too. */
  worker: Schema.String,
  /** Scheme, host and port of the push service. */
  origin: Schema.String,
  /** Of the VAPID key: the first digits of its hash. */
  key: Schema.String,
  /** Responses since the last message, and how many of them said "gone". */
  answers: Count,
  gone: Count,
  /** The mass-gone guard holds: "gone" is not believed. */
  holds: Schema.Boolean,
  /** Sequence in LOG of the newest broadcast of which a push was accepted. */
  reached: Schema.optionalKey(Count),
  /** For the other processes of a group: what this one counted of a row of "gone" responses. */
  row: Schema.optionalKey(
    Schema.Struct({ group: Schema.String, gone: Count, isNew: Schema.Boolean })
  ),
  /**
   * Our credentials were refused: the breaker stays open for so long. 0: they are accepted again.
   */
  openMillis: Schema.optionalKey(Count),
  /** The push service throttled us: send at most so many pushes at a time. */
  window: Schema.optionalKey(Count),
  /** The push service asked us to send nothing for so long. */
  closedMillis: Schema.optionalKey(Count)
})
export type Gossip = typeof Gossip.Type

export const decodeGossip = Schema.decodeUnknownExit(Gossip)

type Findings = Pick<Gossip, "openMillis" | "window" | "closedMillis">

/**
 * Findings of this worker that it has to publish. Received gossip is not among them, or workers
 * would repeat each other for ever.
 */
export class Unpublished {
  #openMillis: number | undefined
  #window: number | undefined
  /** The breaker was opened by a refusal that this worker received. */
  #isOpenHere = false
  #closedUntil = 0

  /** Whether other workers need it at once. */
  get isUrgent(): boolean {
    return this.#openMillis !== undefined || this.#window !== undefined
  }

  breakerOpened(): void {
    this.#isOpenHere = true
  }

  breakerClosed(): void {
    this.#isOpenHere = false
    this.#openMillis = 0
  }

  /** Another worker's gossip has changed the breaker. */
  breakerMerged(): void {
    this.#isOpenHere = false
  }

  narrowed(window: number, closedUntil: number): void {
    this.#window = window
    this.#closedUntil = closedUntil
  }

  /**
   * Returns what to publish now. What is open or closed is published each time, for workers that
   * missed it.
   */
  take(openMillis: number, now: number): Findings {
    const standing = this.#isOpenHere && openMillis > 0 ? openMillis : undefined
    const open = this.#openMillis ?? standing
    const window = this.#window
    const closedMillis = Math.max(0, this.#closedUntil - now)
    this.#openMillis = undefined
    this.#window = undefined
    return {
      ...(open === undefined ? {} : { openMillis: open }),
      ...(window === undefined ? {} : { window }),
      ...(closedMillis === 0 ? {} : { closedMillis })
    }
  }
}
