// The result of a push, as its outcome has it: after an attempt (delivered, ended, or tried again
// and when), or without one. Read back, it says when the next attempt is made, and which one that
// is. Pure.
import {
  attemptsMaxOf,
  type BroadcastRef,
  laterRetriesMillis,
  type RetryJob,
  remainingMillis,
  retryDelayMillis,
  throttledBaseMillis
} from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import { otherPushService, pushServiceAt } from "#domain/subscription/endpoint.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type Attempt, type Deferred, type Failed, originOf, type Target } from "../attempt.ts"

/** An attempt, and what its outcome depends on. */
export interface Attempted {
  readonly target: Target
  readonly ref: BroadcastRef
  readonly attempt: Attempt
  /** Number of the attempt, from 1. */
  readonly number: number
  /** When it was made. */
  readonly at: number
  /** The first delay before another attempt. */
  readonly baseMillis: number
  /** In [0, 1): spreads the next attempt. */
  readonly random: number
  /** The language of the variant that was sent. */
  readonly locale?: string | undefined
}

/** Returns the outcome of a push after an attempt. */
export const resultOf = (attempted: Attempted): PushResult => {
  const { at, attempt, locale, number, target } = attempted
  const { millis, status } = attempt
  const counts = attempt.kind !== "deferred" && attempt.kind !== "expired"
  const base: Base = {
    user: target.user,
    subscription: target.id,
    ...(status === undefined ? {} : { status }),
    attempt: counts ? number : number - 1,
    millis,
    at,
    ...serviceMember(target),
    ...(locale === undefined ? {} : { locale })
  }
  if (attempt.kind === "deferred") return deferredResult(base, attempt, attempted)
  if (attempt.kind === "failed") return failedResult(base, attempt, attempted)
  return { ...base, fate: attempt.kind, reason: attempt.reason }
}

type Base = Omit<PushResult, "fate" | "reason" | "nextAt" | "until">

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
  const attemptsLast = attemptsMaxOf(reason)
  if (base.attempt >= attemptsLast)
    return { ...base, fate: "dead", reason: `attempts-used-up:${reason}` }
  // Throttled without a Retry-After: wait longer than after other failures.
  const firstMillis =
    reason === "throttled" && retryAfterMillis === undefined
      ? throttledBaseMillis(baseMillis)
      : baseMillis
  const nextAt = base.at + retryDelayMillis(base.attempt, firstMillis, random, retryAfterMillis)
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  const until = nextAt + laterRetriesMillis(base.attempt, attemptsLast, firstMillis)
  const ends = until < ref.expiresAt ? { until } : {}
  return { ...base, fate: "retrying", reason, nextAt, ...ends }
}

export type UnsentEnd =
  | { readonly fate: "gone"; readonly reason: "left" | "moved" }
  | { readonly fate: "dead"; readonly reason: "suspended" | "internal" }
  | { readonly fate: "expired"; readonly reason: "expired" }
  | { readonly fate: "cancelled"; readonly reason: "cancelled" }

/** The end of each push of a cancelled broadcast that has none yet. */
export const cancelledEnd: UnsentEnd = { fate: "cancelled", reason: "cancelled" }

/** The end of a push on which workers die. */
export const defectEnd: UnsentEnd = { fate: "dead", reason: "internal" }

/** A push that ends without another attempt. `locale`: of the variant that it would have been. */
type Unsent = Pick<Target, "id" | "user"> &
  Partial<Target> & { readonly locale?: string | undefined }

/** Returns the outcome of a push that ends at `at` without another attempt. */
export const unsentResult = (
  { locale, ...target }: Unsent,
  attempt: number,
  at: number,
  end: UnsentEnd
): PushResult => {
  const { id: subscription, user } = target
  return {
    ...{ user, subscription, attempt, millis: 0, at },
    ...serviceMember(target),
    ...(locale === undefined ? {} : { locale }),
    ...end
  }
}

/** The host of a push service, for metrics and names. */
export const hostOf = (target: Pick<Target, "stored">): string =>
  URL.parse(originOf(target))?.hostname ?? ""

/** The member `service` of the result of a push. */
const serviceMember = (target: Partial<Target>): Pick<PushResult, "service"> => {
  const { stored } = target
  const service = target.service ?? (stored ? pushServiceAt(hostOf({ stored })) : otherPushService)
  return service === otherPushService ? {} : { service }
}

/** A result and the subscription it is for. */
export interface Recorded {
  readonly target: Target
  readonly result: PushResult
  /** The run of the broadcast that first attempted the push. Absent: the one of the job. */
  readonly firstRun?: number
}

/** The next attempt, as the push's last outcome says. */
export interface NextAttempt {
  /** Number of the attempt, from 1. */
  readonly number: number
  readonly lastReason: StoredReason
  /** The language of the variant of the last attempt; undefined: `data`. */
  readonly lastLocale: string | undefined
  /** The run of its broadcast in which the push is or was attempted first; none: the first run. */
  readonly firstRun: number | undefined
  /** Sequence of the last outcome of the push alone; 0: none, it is in its shard's outcome. */
  readonly seq: number
  /** When the reading of the last outcome began, by the monotonic clock. */
  readonly readAt: number
}

/** Returns the next attempt of a retry job. `last`: the last outcome of its push alone. */
export const nextAttemptOf = (
  job: Pick<RetryJob, "attempts" | "firstRun" | "locale" | "reason" | "run">,
  last: Stored | undefined,
  readAt: number
): NextAttempt => {
  const previous = lastResult(last)
  const number = (previous?.attempt ?? job.attempts) + 1
  const former = last?.message.type === "outcome" ? last.message.run : job.firstRun
  return {
    number,
    lastReason: previous?.reason ?? job.reason,
    lastLocale: (previous ?? job).locale,
    // A push that only waited in earlier runs counts in this one.
    firstRun: number === 1 ? job.run : former,
    seq: last?.seq ?? 0,
    readAt
  }
}

/** The result that the last outcome of a push alone has. */
export const lastResult = (last: Stored | undefined): PushResult | undefined =>
  last?.message.type === "outcome" ? last.message.results[0] : undefined

/** A retry job, and what the server says of it. */
interface StoredRetry {
  readonly job: RetryJob
  /** When the server stored the job. */
  readonly storedAt: number
  readonly isFirstDelivery: boolean
}

/**
 * Returns what is left of the wait that the push's last outcome asks for or, without one, the job.
 * Both count from when the server stored them: the clock of the worker that wrote them may be
 * wrong.
 */
export const waitOf = (
  { isFirstDelivery, job, storedAt }: StoredRetry,
  last: Stored | undefined,
  now: number
): number => {
  const previous = lastResult(last)
  if (last !== undefined && previous?.nextAt !== undefined)
    return remainingMillis(previous.nextAt - previous.at, last.at, now, isFirstDelivery)
  return remainingMillis(job.firstWaitMillis, storedAt, now, isFirstDelivery)
}

/** The result of a retry, with what counts need of the outcome before. */
export const withFormer = (
  { service }: Pick<RetryJob, "service">,
  { lastLocale, lastReason, number }: NextAttempt,
  result: PushResult
): PushResult => ({
  ...result,
  ...(service === undefined ? {} : { service }),
  former: {
    reason: lastReason,
    attempt: number - 1,
    ...(lastLocale === undefined ? {} : { locale: lastLocale })
  }
})
