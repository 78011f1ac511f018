// Reads the audience of a broadcast: the subscriptions of many users, and the number of them.
import * as Effect from "effect/Effect"
import type { Recipients } from "#domain/recipients.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import type { Buckets } from "./bucket.ts"
import { readParts } from "./read-parts.ts"
import type { Entry } from "./values.ts"

/** Lists read in one request. A typical one has 1 KB. */
const listsAtOnce = 250
const countsAtOnce = 16

/** Passes the subscriptions of these users to `each`. A user who never had one has no entry. */
export const eachList = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number,
  each: (entry: Entry<SubscriptionList>) => void
) {
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const some = users.slice(i, i + listsAtOnce)
    for (const entry of yield* readParts(buckets, "subscriptions", some, minRevision)) each(entry)
  }
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
