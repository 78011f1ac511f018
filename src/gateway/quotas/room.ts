// Rejects writes for which the streams have no storage. Users may fill 90 % of LOG; the rest is for
// broadcasts, so that no flood of users stops those.
import { Effect } from "effect"
import { type Room, Space, usersShare } from "#nats/admin/space.ts"
import { bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { refuse } from "../http/errors.ts"

/** The streams that each kind of write makes larger. */
const grows = {
  // A broadcast needs WORK for its jobs. WORK keeps messages for up to 35 days: in a full one the
  // broadcast would wait until it expires.
  broadcast: [streams.log.name, streams.work.name],
  registration: [streams.log.name, bucketStream("registrations"), bucketStream("channels")],
  subscription: [streams.log.name, bucketStream("subscriptions")]
}

export type Growth = keyof typeof grows

/** Whether LOG has room for broadcasts only. */
const isReserved = (rooms: ReadonlyArray<Room>): boolean =>
  rooms.some(
    ({ bytes, bytesMax, stream }) =>
      stream === streams.log.name && bytesMax > 0 && bytes >= usersShare * bytesMax
  )

/** Fails with 507 when a stream of this kind of write is full. Running requests may exceed it. */
export const demandRoom = Effect.fnUntraced(function* (kind: Growth) {
  const { isFull, rooms } = yield* Space
  if (isFull(grows[kind]) || (kind !== "broadcast" && isReserved(rooms())))
    return yield* refuse("noRoom")
})
