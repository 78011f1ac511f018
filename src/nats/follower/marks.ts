// The marks in a checkpoint of a follower: the streams and buckets beside it, and whether they are
// those of the same moment. Pure.
import type { Mark } from "../kv/values.ts"

/**
 * Whether two times of one stored message are equal. A consumer's time is rounded to 256 ns before
 * it is cut to milliseconds.
 */
export const isSameTime = (one: number, other: number): boolean => Math.abs(one - other) <= 1

export interface Sight {
  /** Name of the stream. */
  readonly stream: string
  /** Sequence of its last message. */
  readonly lastSeq: number
}

/**
 * Why a stream is not the one that a checkpoint was made from; undefined: it is. `at`: time of the
 * message at the mark's sequence; undefined: the stream has no such message, or no longer.
 */
export const streamFault = (
  { lastSeq, stream }: Sight,
  checkpoint: number,
  mark: Mark | undefined,
  at: number | undefined
): string | undefined => {
  const seen = Math.max(checkpoint, mark?.seq ?? 0)
  if (lastSeq < seen)
    return `${stream} ends at message ${lastSeq}, but buckets were made from it up to ${seen}`
  return mark !== undefined && at !== undefined && !isSameTime(at, mark.at)
    ? `message ${mark.seq} of ${stream} is not the one that the buckets were made from`
    : undefined
}

/** How a stream looked at a moment while processes run. */
export interface DatedSight extends Sight {
  /** When the stream was created, as the server writes it. */
  readonly created: string
}

/** Why a stream is not the one that it was; undefined: it is. */
export const replacedFault = (before: DatedSight, now: DatedSight): string | undefined => {
  const { stream } = before
  if (now.created !== before.created) return `${stream} was deleted and created again`
  return now.lastSeq < before.lastSeq
    ? `${stream} ended at message ${before.lastSeq} and ends at ${now.lastSeq} now`
    : undefined
}
