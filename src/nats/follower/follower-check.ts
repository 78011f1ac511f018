// Compares a follower's checkpoint with its stream and its buckets: a backup may have copied them
// at different moments.

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
import { streamFault } from "./marks.ts"

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
