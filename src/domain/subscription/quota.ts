// How many subscriptions a user may have, together and at one push service. Pure.
import type { SubscriptionList } from "./subscription.ts"

export interface SubscriptionQuota {
  readonly subscriptionsPerUserMax: number
  readonly subscriptionsPerUserPerHostMax: number
}

/** The host of an endpoint; NATS clients may have stored one that is no URL. */
const hostOf = (endpoint: string): string => (URL.canParse(endpoint) ? new URL(endpoint).host : "")

/** Which quota leaves no room for another subscription at an endpoint; undefined: none. */
export const exhausted = (
  { subscriptions }: SubscriptionList,
  endpoint: string,
  { subscriptionsPerUserMax, subscriptionsPerUserPerHostMax }: SubscriptionQuota
): "user" | "host" | undefined => {
  const stored = Object.values(subscriptions)
  if (stored.length >= subscriptionsPerUserMax) return "user"
  const host = hostOf(endpoint)
  const atHost = stored.filter(({ data }) => hostOf(data.endpoint) === host)
  return atHost.length >= subscriptionsPerUserPerHostMax ? "host" : undefined
}
