// The target of a push: one subscription of one user.
import type { StoredSubscription } from "#domain/subscription/subscription.ts"
import type { UserToken } from "#streams/tokens.ts"

export interface Target {
  readonly user: UserToken
  /** Id of the subscription. */
  readonly id: string
  readonly stored: StoredSubscription
  /** The name of the push service, where `stored` has no endpoint any more. */
  readonly service?: string
}

/** In place of the data of a subscription that was removed. */
export const removedData = {
  endpoint: "https://gone.invalid/",
  keys: { auth: "", p256dh: "" }
} as const

/**
 * Returns scheme, host and port, byte for byte as the endpoint has them: WNS tokens break when a
 * URL is written anew (web-push-php #233). An endpoint that is no URL was not written by Bellcast,
 * which checks at registration; its origin is one that no policy allows.
 */
export const originOf = ({ stored }: Pick<Target, "stored">): string => {
  const origin = /^[a-z]+:\/\/[^/?#]+/.exec(stored.data.endpoint)?.[0]
  return origin !== undefined && URL.canParse(origin) ? origin : "https://invalid.invalid"
}
