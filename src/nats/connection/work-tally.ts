// What a process does with the messages that it takes from durable consumers, and as a follower.
// Progress is a message that ended: acknowledged, or given back as it is meant to wait. A message
// that is taken again and again is none.
import * as Schema from "effect/Schema"

/** A message that was given back and did not come again: another process has it. */
const givenBackMillisMax = 60_000
/** Messages of a reader that are noted: more than a process has in hand. */
const takenMax = 4_096
const reasonMax = 200

const Millis = Schema.Finite

/** A reader is a durable consumer or a follower, by its name. */
export const WorkReport = Schema.Struct({
  reader: Schema.String,
  /** How long ago a message ended last; absent: none did. */
  endedMillis: Schema.optionalKey(Millis),
  /** For how long some message has been taken that has not ended; absent: none is. */
  takenMillis: Schema.optionalKey(Millis),
  /** Why a message that was taken did not end. */
  reason: Schema.optionalKey(Schema.String),
  /** For how long NATS has refused to give out messages; absent: it does not. */
  refusedMillis: Schema.optionalKey(Millis)
})
export type WorkReport = typeof WorkReport.Type

interface Reader {
  /**
   * The messages that were taken and have not ended, by their sequences: when each was given back
   * without an end; Infinity: it is in hand.
   */
  readonly taken: Map<number, number>
  takenSince: number | undefined
  endedAt: number | undefined
  refusedSince: number | undefined
  reason: string | undefined
}

/** Times are those of `performance`. */
export class WorkTally {
  readonly #readers = new Map<string, Reader>()

  #of(reader: string): Reader {
    const found = this.#readers.get(reader)
    if (found !== undefined) return found
    const made: Reader = {
      taken: new Map(),
      takenSince: undefined,
      endedAt: undefined,
      refusedSince: undefined,
      reason: undefined
    }
    this.#readers.set(reader, made)
    return made
  }

  take(name: string, seq: number, now = performance.now()): void {
    const reader = this.#of(name)
    reader.refusedSince = undefined
    reader.takenSince ??= now
    if (reader.taken.has(seq) || reader.taken.size < takenMax)
      reader.taken.set(seq, Number.POSITIVE_INFINITY)
  }

  /** A message ended; without a sequence, some message did, or a part of one. */
  end(name: string, seq?: number, now = performance.now()): void {
    const reader = this.#of(name)
    reader.endedAt = now
    reader.reason = undefined
    if (seq !== undefined) this.drop(name, seq)
  }

  /** A message is no more this process's. */
  drop(name: string, seq: number): void {
    const reader = this.#of(name)
    reader.taken.delete(seq)
    if (reader.taken.size === 0) reader.takenSince = undefined
  }

  /** A message could not be handled, and comes again. */
  hinder(name: string, seq: number, reason: string, now = performance.now()): void {
    const reader = this.#of(name)
    reader.reason = reason.slice(0, reasonMax)
    if (reader.taken.has(seq)) reader.taken.set(seq, now)
  }

  /** NATS gave no messages, but an error. */
  refuse(name: string, now = performance.now()): void {
    this.#of(name).refusedSince ??= now
  }

  /** NATS accepted a pull. */
  accept(name: string): void {
    this.#of(name).refusedSince = undefined
  }

  report(now = performance.now()): ReadonlyArray<WorkReport> {
    return [...this.#readers].map(([name, reader]) => {
      for (const [seq, givenBackAt] of reader.taken)
        if (now - givenBackAt > givenBackMillisMax) this.drop(name, seq)
      const { endedAt, reason, refusedSince, takenSince } = reader
      return {
        reader: name,
        ...(endedAt !== undefined && { endedMillis: now - endedAt }),
        ...(takenSince !== undefined && { takenMillis: now - takenSince }),
        ...(takenSince !== undefined && reason !== undefined && { reason }),
        ...(refusedSince !== undefined && { refusedMillis: now - refusedSince })
      }
    })
  }
}
