// The checkpoint of a follower: how far the stored state of its buckets goes, and whether its
// stream and its buckets are those that it was made from: a backup may have copied them at
// different moments.
import * as Effect from "effect/Effect"
import { type BucketName, bucketStream, metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import type { Nats } from "../connection/connection.ts"
import {
  codeOf,
  type Failure,
  type NatsUnavailable,
  nothing,
  streamNotFound,
  unavailable
} from "../connection/errors.ts"
import type { Buckets } from "../kv/bucket.ts"
import type { Mark } from "../kv/values.ts"
import { infoOf } from "../stream/info.ts"

export interface Checkpoint {
  readonly name: FollowerName
  seq: number
  revision: number
  /** Undefined: nothing was applied. */
  mark: Mark | undefined
  /** This term has written it. */
  isWritten: boolean
}

type Kv = Buckets["Service"]

export const readCheckpoint = Effect.fnUntraced(function* (buckets: Kv, name: FollowerName) {
  const meta = yield* buckets.get(followers[name].checkpoint, metaKey)
  const checkpoint: Checkpoint = {
    name,
    seq: meta?.value.seq ?? 0,
    revision: meta?.revision ?? 0,
    mark: meta?.value.mark,
    isWritten: false
  }
  return checkpoint
})

/** The work of a follower since its last checkpoint. */
interface Progressed {
  /** Sequence of the last message whose changes are stored. */
  readonly stored: number
  readonly mark: Mark | undefined
}

/** Writes the checkpoint once, and if the sequence is higher. */
export const saveCheckpoint = Effect.fnUntraced(
  function* (buckets: Kv, checkpoint: Checkpoint, { mark, stored }: Progressed) {
    if (checkpoint.isWritten && stored <= checkpoint.seq) return
    const seq = Math.max(stored, checkpoint.seq)
    const bucket = followers[checkpoint.name].checkpoint
    const meta = { v: 1, seq, ...(mark === undefined ? {} : { mark }) } as const
    checkpoint.revision = yield* buckets.put(bucket, metaKey, meta, checkpoint.revision)
    Object.assign(checkpoint, { seq, mark, isWritten: true })
  },
  // A full bucket has no room for the checkpoint either. The former one stays valid.
  Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
  Effect.mapError(unavailable("checkpoint"))
)

type Door = Pick<Nats["Service"], "message" | "request">

/** The result of a read; undefined where the stream itself is missing. */
export const ifThere = <A, R>(read: Effect.Effect<A, NatsUnavailable, R>) =>
  read.pipe(
    Effect.catchIf(
      ({ cause }) => codeOf(cause as Failure) === streamNotFound,
      () => nothing
    )
  )

/** When the message at a sequence was stored; undefined: the stream does not have it. */
const timeOf = ({ message }: Pick<Door, "message">, stream: string, seq: number) =>
  message(stream, { seq }).pipe(
    Effect.map((found) => (found === undefined ? undefined : Date.parse(found.time))),
    Effect.mapError(unavailable(`read ${stream}`)),
    ifThere
  )

/** Buckets that are older than the follower's checkpoint. */
const olderBuckets = Effect.fnUntraced(function* (door: Door, name: FollowerName, mark: Mark) {
  const faults: Array<string> = []
  for (const [bucket, revision] of Object.entries(mark.revisions)) {
    const stream = bucketStream(bucket as BucketName)
    const last = (yield* infoOf(door, stream))?.state.last_seq ?? 0
    if (last < revision)
      faults.push(`${stream} is older than ${bucketStream(followers[name].checkpoint)}`)
  }
  return faults
})

/**
 * Why a follower must not go on from its checkpoint, in words. Reads the stream last: a service
 * that runs only makes it longer.
 */
export const followerFaults = Effect.fnUntraced(function* (
  door: Door,
  buckets: Buckets["Service"],
  name: FollowerName
) {
  const meta = (yield* ifThere(buckets.get(followers[name].checkpoint, metaKey)))?.value
  if (meta?.seq === undefined) return []
  const { mark, seq } = meta
  const older = mark === undefined ? [] : yield* olderBuckets(door, name, mark)
  const stream = streams[followers[name].stream].name
  const at = mark === undefined ? undefined : yield* timeOf(door, stream, mark.seq)
  const lastSeq = (yield* infoOf(door, stream))?.state.last_seq ?? 0
  const fault = streamFault({ stream, lastSeq }, seq, mark, at)
  return fault === undefined ? older : [fault, ...older]
})

/**
 * Whether two times of one stored message are equal. A consumer's time is rounded to 256 ns before
 * it is cut to milliseconds.
 */
export const isSameTime = (one: number, other: number): boolean => Math.abs(one - other) <= 1

interface Sight {
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
