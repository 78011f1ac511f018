// Renewing a subscription by a secret, without a login. LOG and bucket hold the hash of a secret.
// Pure.

import type { SubscriptionData } from "./command.ts"
import { hasSameKeys } from "./command.ts"
import { foldedEndpoint } from "./endpoint.ts"
import { type SubscriptionList, storedIn } from "./subscription.ts"
import { renewableMillisMax } from "./tombstone.ts"

/** How long a renewal may be repeated, because its response may have been lost. */
const repeatedMillisMax = 60 * 60_000

/** The subscription that a secret renews, or renewed in the same request before. */
export interface Renewable {
  /** Sequence of the put that began the subscription. */
  readonly generation: number
  /** Undefined: a push service ended it. */
  readonly data?: SubscriptionData
  readonly isRepeated: boolean
}

/**
 * The subscription `id`, if the secret of this hash renews it in a request that stores `data` as
 * `newId`. Undefined: the secret is unknown, spent or void.
 */
export const renewableBy = (
  list: SubscriptionList,
  hash: string,
  id: string,
  { data, id: newId }: { readonly data: SubscriptionData; readonly id: string },
  now: number
): Renewable | undefined => {
  const stored = storedIn(list, id)
  if (stored?.renewal === hash)
    return { generation: stored.seq, data: stored.data, isRepeated: false }
  const ended = Object.hasOwn(list.tombstones, id) ? list.tombstones[id] : undefined
  if (typeof ended === "object" && "renewal" in ended && ended.renewal === hash)
    return now - ended.lastModified < renewableMillisMax
      ? { generation: ended.generation, isRepeated: false }
      : undefined
  const renewed = storedIn(list, newId)
  const isRepeated =
    renewed?.renewed?.by === hash &&
    now - renewed.renewed.at < repeatedMillisMax &&
    foldedEndpoint(renewed.data.endpoint) === foldedEndpoint(data.endpoint) &&
    hasSameKeys(renewed.data, data)
  return isRepeated ? { generation: renewed.seq, data: renewed.data, isRepeated } : undefined
}
