// The end of an attempt at a push: read from the response (push/post.ts), then judged by the
// state of the push service (push-service/push-service.ts), or decided before anything is sent.
// jobs/record/record.ts makes the recorded outcome of it.
import type {
  DeadReason,
  DeferReason,
  GoneReason,
  RefusalReason,
  RetryReason
} from "#domain/reason.ts"

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
export interface Expired {
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
