// The result of one attempt at a push: judged from the response (classify.ts), then by the state of
// the push service (../push-service/push-service.ts). jobs/result.ts makes the recorded outcome of
// it.
import type { DeadReason, DeferReason, GoneReason, RetryReason } from "#domain/reason.ts"

/**
 * Our VAPID key or token was refused: by the origin, or for one subscription made with another key.
 */
export type Refusal =
  | { readonly kind: "credentials"; readonly reason: "credentials" }
  | { readonly kind: "mismatch"; readonly reason: "key-mismatch" }

/** The meaning of a response by itself. */
export type ResponseResult =
  | { readonly kind: "accepted"; readonly reason: "accepted" }
  | { readonly kind: "gone"; readonly reason: GoneReason }
  | { readonly kind: "dead"; readonly reason: DeadReason }
  | { readonly kind: "retry"; readonly reason: RetryReason; readonly retryAfterMillis?: number }
  | Refusal

/** The push waits until `until`, by the monotonic clock. The attempt does not count. */
export interface Deferred {
  readonly kind: "deferred"
  readonly reason: DeferReason
  readonly until: number
}

export type AttemptResult = ResponseResult | Deferred

/** The push waits for so long. The attempt does not count. */
export interface Waits {
  readonly kind: "deferred"
  readonly reason: DeferReason
  readonly waitMillis: number
}

export const waitsOf = ({ kind, reason, until }: Deferred, now: number): Waits => ({
  kind,
  reason,
  waitMillis: Math.max(0, until - now)
})

export type Attempt = (ResponseResult | Waits) & {
  /** HTTP status; absent without a response. */
  readonly status?: number
  /** From sending to the end of the last response; 0: nothing was sent. */
  readonly millis: number
}
