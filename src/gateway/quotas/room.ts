// Whether there is room for what a request would store for good.
import { Effect } from "effect"
import { Space } from "#nats/admin/space.ts"
import { bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { refuse } from "../http/errors.ts"

/** The streams that grow by each kind of write. */
const grows = {
  // A broadcast becomes shard jobs and outcomes. WORK keeps them for 35 days, so a full one would
  // keep the broadcast waiting until it expires.
  broadcast: [streams.log.name, streams.work.name],
  registration: [streams.log.name, bucketStream("registrations"), bucketStream("channels")],
  subscription: [streams.log.name, bucketStream("subscriptions")]
}

export type Growth = keyof typeof grows

/** Refuses with 507 a write that makes a full stream grow. Requests in flight may overshoot. */
export const demandRoom = Effect.fnUntraced(function* (kind: Growth) {
  if ((yield* Space).isFull(grows[kind])) return yield* refuse("noRoom")
})
