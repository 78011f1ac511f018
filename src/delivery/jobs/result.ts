// When the next attempt of a retry job is made, and which one it is: what the job and the push's
// last outcome say. Pure.
import { type RetryJob, remainingMillis } from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import type { Stored } from "#nats/stream/stored.ts"

/** The next attempt, as the push's last outcome says. */
export interface NextAttempt {
  /** Number of the attempt, from 1. */
  readonly number: number
  readonly lastReason: StoredReason
  /** The run of its broadcast in which the push is or was attempted first; none: the first run. */
  readonly firstRun: number | undefined
  /** Sequence of the last outcome of the push alone; 0: none, it is in its shard's outcome. */
  readonly seq: number
  /** When the reading of the last outcome began, by the monotonic clock. */
  readonly readAt: number
}

export const lastResult = (last: Stored | undefined): PushResult | undefined =>
  last?.message.type === "outcome/1" ? last.message.results[0] : undefined

/** A retry job, and what the server says of it. */
export interface Job {
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
  { isFirstDelivery, job, storedAt }: Job,
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
  { lastReason, number }: NextAttempt,
  result: PushResult
): PushResult => ({
  ...result,
  ...(service === undefined ? {} : { service }),
  former: { reason: lastReason, attempt: number - 1 }
})

export const nextAttemptOf = (
  job: Pick<RetryJob, "attempts" | "firstRun" | "reason" | "run">,
  last: Stored | undefined,
  readAt: number
): NextAttempt => {
  const previous = lastResult(last)
  const number = (previous?.attempt ?? job.attempts) + 1
  const former = last?.message.type === "outcome/1" ? last.message.run : job.firstRun
  return {
    number,
    lastReason: previous?.reason ?? job.reason,
    // A push that only waited in earlier runs counts in this one.
    firstRun: number === 1 ? job.run : former,
    seq: last?.seq ?? 0,
    readAt
  }
}
