// An attempt at a push: to whom, and how it ends. Its end is read from the response (push/post.ts),
// then judged by the state of the push service (push-service/push-service.ts), or decided before
// anything is sent. jobs/result.ts makes the outcome of it.
import type {
  DeadReason,
  DeferReason,
  GoneReason,
  RefusalReason,
  RetryReason
} from "#domain/reason.ts"
import type { StoredSubscription } from "#domain/subscription/subscription.ts"
import type { UserToken } from "#streams/tokens.ts"

/** The target of a push: one subscription of one user. */
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

/**
 * A push as its push service sees it: one that is about to be sent, or got a response. Its times
 * are of the monotonic clock.
 */
export interface Push {
  /** Tells the subscriptions of this push service apart. */
  readonly subscription: string
  readonly user: string
  /** Sequences in LOG: of the command that stored the subscription, and of the broadcast. */
  readonly generation: number
  readonly broadcast: number
  /** Whether the last response to this push was "gone" and not believed. */
  readonly saidGone: boolean
  /** When its broadcast was accepted. */
  readonly acceptedAt: number
  /** When its subscription was stored. */
  readonly storedAt: number
  readonly sentAt: number
}

/** The attempt counts. Another one follows while some are left. */
export interface Failed {
  readonly kind: "failed"
  readonly reason: RetryReason | RefusalReason
  readonly retryAfterMillis?: number
}

/** The meaning of a response by itself. */
export type ResponseResult =
  | { readonly kind: "delivered"; readonly reason: "accepted" }
  | { readonly kind: "gone"; readonly reason: GoneReason }
  | { readonly kind: "dead"; readonly reason: DeadReason }
  | Failed

/** The push waits for so long. The attempt does not count. */
export interface Deferred {
  readonly kind: "deferred"
  readonly reason: DeferReason
  readonly waitMillis: number
}

/** The life of the push was over while it waited. The attempt does not count. */
interface Expired {
  readonly kind: "expired"
  readonly reason: `expired:${DeferReason}`
}

export type AttemptResult = ResponseResult | Deferred | Expired

export type Attempt = AttemptResult & {
  /**
   * "response": the push service decided by its response, given those before it. "connection": no
   * response came, or it came too late to send the next request. "process": this process decided,
   * before it sent the next request.
   */
  readonly decidedBy: "response" | "connection" | "process"
  /** HTTP status; absent without a response. */
  readonly status?: number
  /** From sending to the end of the last response; 0: nothing was sent. */
  readonly millis: number
}
