// The recorded outcome of one attempt: delivered, ended, or tried again and when. Pure.
import {
  attemptsMax,
  type BroadcastRef,
  retryDelayMillis,
  throttledBaseMillis
} from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { Attempt, ResponseResult, Waits } from "../attempt-result.ts"
import type { Target } from "../push/target.ts"

/** A result and the subscription it is for. */
export interface Recorded {
  readonly target: Target
  readonly result: PushResult
}

type Base = Omit<PushResult, "fate" | "reason" | "nextAt">

/** The wait is spread by up to a tenth, so that deferred pushes do not all come back at once. */
const deferredResult = (
  base: Base,
  ref: BroadcastRef,
  { reason, waitMillis }: Waits,
  random: number
): PushResult => {
  const nextAt = base.at + Math.round(Math.max(1, waitMillis) * (1 + random / 10))
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

type Failed = Extract<ResponseResult, { readonly kind: "retry" | "credentials" | "mismatch" }>

const failedResult = (
  base: Base,
  ref: BroadcastRef,
  failed: Failed,
  baseMillis: number,
  random: number
): PushResult => {
  const { reason } = failed
  if (base.attempt >= attemptsMax)
    return { ...base, fate: "dead", reason: `attempts-used-up:${reason}` }
  const retryAfterMillis = failed.kind === "retry" ? failed.retryAfterMillis : undefined
  // Throttled without a Retry-After: wait longer than after other failures.
  const firstMillis =
    reason === "throttled" && retryAfterMillis === undefined
      ? throttledBaseMillis(baseMillis)
      : baseMillis
  const nextAt = base.at + retryDelayMillis(base.attempt, firstMillis, random, retryAfterMillis)
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

/**
 * Returns the outcome of a push after its `attempt`-th attempt (from 1), made at `at`. `random` in
 * [0, 1) spreads the next attempt. A deferral does not count as an attempt.
 */
export const resultOf = (
  target: Target,
  ref: BroadcastRef,
  attempted: Attempt,
  attempt: number,
  at: number,
  baseMillis: number,
  random: number
): PushResult => {
  const { millis, status } = attempted
  const base: Base = {
    user: target.user,
    subscription: target.id,
    ...(status === undefined ? {} : { status }),
    attempt,
    millis,
    at
  }
  switch (attempted.kind) {
    case "accepted":
      return { ...base, fate: "delivered", reason: attempted.reason }
    case "gone":
    case "dead":
      return { ...base, fate: attempted.kind, reason: attempted.reason }
    case "deferred":
      return deferredResult({ ...base, attempt: attempt - 1 }, ref, attempted, random)
    default:
      return failedResult(base, ref, attempted, baseMillis, random)
  }
}

export type UnsentEnd =
  | { readonly fate: "gone"; readonly reason: "left" }
  | { readonly fate: "dead"; readonly reason: "suspended" }
  | { readonly fate: "expired"; readonly reason: "expired" }

/** Returns the outcome of a push that ends at `at` without another attempt. */
export const unsentResult = (
  { id, user }: Pick<Target, "id" | "user">,
  attempt: number,
  at: number,
  end: UnsentEnd
): PushResult => ({ user, subscription: id, attempt, millis: 0, at, ...end })
