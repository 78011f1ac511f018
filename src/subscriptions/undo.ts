// Undoes the removal or the suspension of a subscription, for requests and for the command alike.
import * as Effect from "effect/Effect"
import { endpointHash, isMoved, lastOwnerOf, noOwners } from "#domain/subscription/owners.ts"
import { exhausted, type SubscriptionQuota } from "#domain/subscription/quota.ts"
import { nextTimestamp, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { validRenewalIn } from "#domain/subscription/tombstone.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import { type Removal, suspended } from "#subscriptions/removals.ts"

/**
 * Whether another user has stored a removed subscription since, also one who lost it again.
 * `list`: that of its user.
 */
export const isStoredByAnother = Effect.fnUntraced(function* (
  user: UserToken,
  list: SubscriptionList,
  { id, put: { data } }: Removal
) {
  if (isMoved(list, id)) return true
  const hash = endpointHash(data.endpoint)
  const page = yield* (yield* Buckets).get("subscriptions", keys.endpointOwners(hash))
  return (lastOwnerOf(page?.value ?? noOwners, hash)?.owner ?? user) !== user
})

/** The message that undoes a removal. Undefined: the user has as many subscriptions as allowed. */
export const undoing = (
  { cause, generation, id, put: { data, user: name, vapidKey } }: Removal,
  list: SubscriptionList,
  now: number,
  quota: SubscriptionQuota
) => {
  if (cause === suspended)
    return {
      type: "subscription.cleared/1",
      body: { id, generation, by: "operator", at: now }
    } as const
  if (exhausted(list, data.endpoint, quota) !== undefined) return undefined
  // The browser still has this secret, and does not ask for another one.
  const renewal = validRenewalIn(list.tombstones, id, now)
  return {
    type: "subscription.put/1",
    body: {
      user: name,
      id,
      data,
      restored: true,
      ...(vapidKey === undefined ? {} : { vapidKey }),
      ...(renewal === undefined ? {} : { renewal }),
      lastModified: nextTimestamp(list, now)
    }
  } as const
}
