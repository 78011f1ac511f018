// Buckets while they are made again, as an administrator sees them.
import type { StreamState } from "@nats-io/jetstream"
import { type administer, bucketStreams } from "./history.ts"
import type { NatsAdmin } from "./nats-admin.ts"

/** A killed process leaves its leases, for 16 s. Nobody waits for their end in tests. */
export const endLeases = ({ jsm }: Pick<NatsAdmin, "jsm">) =>
  jsm.streams.purge("KV_bellcast_cache", { filter: "$KV.bellcast_cache.lease.>" })

/** Messages in all buckets, and the sequences that they have used since they were made. */
export const filled = async ({ jsm }: Pick<Awaited<ReturnType<typeof administer>>, "jsm">) => {
  const states = await Promise.all(
    bucketStreams.map((stream) =>
      jsm.streams.info(stream).then(
        ({ state }) => state,
        () => undefined
      )
    )
  )
  const sum = (of: (state: StreamState) => number) =>
    states.reduce((all, state) => all + (state === undefined ? 0 : of(state)), 0)
  return {
    messages: sum(({ messages }) => messages),
    used: sum(({ first_seq, last_seq, messages }) =>
      messages === 0 ? 0 : last_seq - first_seq + 1
    )
  }
}
