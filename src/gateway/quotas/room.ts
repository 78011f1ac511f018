// Rejects writes for which the streams have no storage, and no others. Users may fill 90 % of LOG;
// the rest is for broadcasts, so that no flood of users stops those.
import * as Effect from "effect/Effect"
import { lastShare, Space, usersShare } from "#nats/watch/space.ts"
import { type BucketName, bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { refuse } from "../http/errors.ts"

interface Needs {
  /** Streams that the write makes larger. */
  readonly grows: ReadonlyArray<string>
  /** Streams in which the write replaces an entry by one of about the same size. */
  readonly rewrites?: ReadonlyArray<string>
}

const of = (...names: ReadonlyArray<BucketName>) => names.map(bucketStream)
const log = streams.log.name

/** The streams and buckets in which each kind of write needs room. */
const needs = {
  // A broadcast needs WORK for its jobs. WORK keeps messages for up to 35 days: in a full one the
  // broadcast would wait until it expires.
  broadcast: { grows: [log, streams.work.name, ...of("broadcasts")] },
  /** A broadcast of a user, who must leave its share of LOG to publishers. */
  test: { grows: [log, streams.work.name, ...of("broadcasts")] },
  registration: { grows: [log, ...of("registrations")], rewrites: of("channels") },
  /** The first registration in a channel. */
  channel: { grows: [log, ...of("registrations", "channels")] },
  subscription: { grows: [log, ...of("subscriptions")] },
  /** A put that makes the list of the user no larger. */
  renewal: { grows: [log], rewrites: of("subscriptions") }
} satisfies Record<string, Needs>

export type Growth = keyof typeof needs

/** Fails with 507 when a stream of this kind of write is full. Running requests may exceed it. */
export const demandRoom = Effect.fnUntraced(function* (kind: Growth) {
  const space = yield* Space
  const { grows, rewrites = [] }: Needs = needs[kind]
  const isReserved = kind !== "broadcast" && space.isFull([log], usersShare)
  if (isReserved || space.isFull(grows) || space.isFull(rewrites, lastShare))
    return yield* refuse("no-room")
})

/** Fails with 507 when one of these buckets is full. */
export const demandRoomIn = Effect.fnUntraced(function* (buckets: ReadonlyArray<BucketName>) {
  if ((yield* Space).isFull(of(...buckets))) return yield* refuse("no-room")
})
