// Reads to whom a broadcast may go: the subscriptions of many users, and how many there are.
import * as Effect from "effect/Effect"
import type { Recipients } from "#domain/recipients.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { Buckets } from "./bucket.ts"
import type { Entry } from "./values.ts"

/** Lists read in one request. A typical one has 1 KB. */
const listsAtOnce = 250
const countsAtOnce = 16

/** Reads lists with one request; in halves where they do not fit into one response. */
const readLists = (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number
): Effect.Effect<ReadonlyArray<Entry<SubscriptionList>>, NatsUnavailable> =>
  Effect.gen(function* () {
    const entries = yield* buckets.getMany("subscriptions", users, minRevision)
    if (entries !== undefined) return entries
    if (users.length === 1)
      return yield* unavailable("read subscriptions")(new Error("one list is too large"))
    const half = Math.ceil(users.length / 2)
    const parts = yield* Effect.forEach([users.slice(0, half), users.slice(half)], (part) =>
      readLists(buckets, part, minRevision)
    )
    return parts.flat()
  })

/** Passes the subscriptions of these users to `each`. A user who never had one has no entry. */
export const eachList = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number,
  each: (entry: Entry<SubscriptionList>) => void
) {
  for (let i = 0; i < users.length; i += listsAtOnce)
    for (const entry of yield* readLists(buckets, users.slice(i, i + listsAtOnce), minRevision))
      each(entry)
})

/** Registrations of all these channels together: a user may have several of them. */
export const countRegistrations = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  channels: Recipients["channels"]
) {
  const entries = yield* Effect.forEach(
    channels,
    (channel) => buckets.get("channels", keys.channelRegistrations(channel)),
    { concurrency: countsAtOnce }
  )
  return entries.reduce((sum, entry) => sum + (entry?.value.registrations ?? 0), 0)
})
