// The target of a push: one subscription of one user.
import type { KeyObject } from "node:crypto"
import type { StoredSubscription } from "#domain/subscription/subscription.ts"
import type { UserToken } from "#streams/tokens.ts"

/** The keys of one subscription, decoded once: a message is encrypted for them. */
export interface Recipient {
  /** 65 bytes, an uncompressed P-256 point. */
  readonly p256dh: Buffer
  /** 16 bytes. */
  readonly auth: Buffer
  readonly key: KeyObject
}

export interface Target {
  readonly user: UserToken
  /** Id of the subscription. */
  readonly id: string
  readonly stored: StoredSubscription
  /** Its keys, decoded when first used: that costs 35 us, a third of encrypting. */
  recipient?: Recipient
}

/**
 * Returns scheme, host and port, byte for byte as the endpoint has them: WNS tokens break when a
 * URL is written anew (web-push-php #233). An endpoint that is no URL was not written by Bellcast,
 * which checks at registration; its origin is one that no policy allows.
 */
export const originOf = ({ stored }: Target): string => {
  const origin = /^[a-z]+:\/\/[^/?#]+/.exec(stored.data.endpoint)?.[0]
  return origin !== undefined && URL.canParse(origin) ? origin : "https://invalid.invalid"
}
