// Rejects writes for which the streams have no storage.
import { Effect } from "effect"
import { Space } from "#nats/admin/space.ts"
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

/** Fails with 507 when a stream of this kind of write is full. Running requests may exceed it. */
export const demandRoom = Effect.fnUntraced(function* (kind: Growth) {
  if ((yield* Space).isFull(grows[kind])) return yield* refuse("noRoom")
})
