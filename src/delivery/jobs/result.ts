// The recorded outcome of one attempt: delivered, ended, or tried again and when. Pure.
import {
  attemptsMax,
  type BroadcastRef,
  retryDelayMillis,
  throttledBaseMillis
} from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { Attempt, Deferred, Failed } from "../attempt-result.ts"
import type { Target } from "../push/target.ts"

/** A result and the subscription it is for. */
export interface Recorded {
  readonly target: Target
  readonly result: PushResult
}

/** An attempt, and what its outcome depends on. */
export interface Attempted {
  readonly target: Target
  readonly ref: BroadcastRef
  readonly attempt: Attempt
  /** Which attempt it is, from 1. */
  readonly number: number
  /** When it was made. */
  readonly at: number
  /** The first delay before another attempt. */
  readonly baseMillis: number
  /** In [0, 1): spreads the next attempt. */
  readonly random: number
}

type Base = Omit<PushResult, "fate" | "reason" | "nextAt">

/** The wait is spread by up to a tenth, so that deferred pushes do not all come back at once. */
const deferredResult = (
  base: Base,
  { reason, waitMillis }: Deferred,
  { random, ref }: Attempted
): PushResult => {
  const nextAt = base.at + Math.round(Math.max(1, waitMillis) * (1 + random / 10))
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

const failedResult = (
  base: Base,
  { reason, retryAfterMillis }: Failed,
  { baseMillis, random, ref }: Attempted
): PushResult => {
  if (base.attempt >= attemptsMax)
    return { ...base, fate: "dead", reason: `attempts-used-up:${reason}` }
  // Throttled without a Retry-After: wait longer than after other failures.
  const firstMillis =
    reason === "throttled" && retryAfterMillis === undefined
      ? throttledBaseMillis(baseMillis)
      : baseMillis
  const nextAt = base.at + retryDelayMillis(base.attempt, firstMillis, random, retryAfterMillis)
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

/** Returns the outcome of a push after an attempt. */
export const resultOf = (attempted: Attempted): PushResult => {
  const { at, attempt, number, target } = attempted
  const { millis, status } = attempt
  const counts = attempt.kind !== "deferred" && attempt.kind !== "expired"
  const base: Base = {
    user: target.user,
    subscription: target.id,
    ...(status === undefined ? {} : { status }),
    attempt: counts ? number : number - 1,
    millis,
    at
  }
  if (attempt.kind === "deferred") return deferredResult(base, attempt, attempted)
  if (attempt.kind === "failed") return failedResult(base, attempt, attempted)
  return { ...base, fate: attempt.kind, reason: attempt.reason }
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
