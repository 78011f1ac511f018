// When a broadcast pauses by itself: the share of its attempted pushes that failed. Pure.
import * as Schema from "effect/Schema"
import type { Fate, Outcome } from "../outcome.ts"
import { isThrottling, type StoredReason } from "../reason.ts"

/** Fewer attempted pushes say little. */
export const attemptedMin = 100

/** Counts of the pushes whose first attempt was in one run of the broadcast. */
export const Failures = Schema.Struct({
  /** The share that pauses the broadcast. */
  share: Schema.Number,
  run: Schema.Int,
  attempted: Schema.Int,
  failed: Schema.Int,
  /** Sequence in WORK of the outcome by which the share was reached. Absent: it is not. */
  reached: Schema.optionalKey(Schema.Int)
})
export type Failures = typeof Failures.Type

export const noFailures = (share: number): Failures => ({ share, run: 0, attempted: 0, failed: 0 })

interface Attempt {
  readonly fate: Fate
  readonly reason: StoredReason
  readonly attempt: number
}

const isAttempted = ({ attempt }: Attempt): boolean => attempt > 0

const isFailed = (push: Attempt): boolean => {
  if (!isAttempted(push)) return false
  if (push.fate === "retrying") return !isThrottling(push.reason)
  return push.fate === "dead" || push.fate === "expired"
}

/**
 * Counts an outcome that was stored at `seq`. A resume begins anew: the publisher has seen what
 * failed before.
 */
export const evolveFailures = (
  before: Failures,
  { results, run = 0 }: Outcome,
  seq: number
): Failures => {
  if (run < before.run) return before
  const present = run === before.run ? before : { ...noFailures(before.share), run }
  let { attempted, failed } = present
  for (const result of results) {
    const former = result.former && { ...result.former, fate: "retrying" as const }
    attempted += Number(isAttempted(result)) - Number(former !== undefined && isAttempted(former))
    failed += Number(isFailed(result)) - Number(former !== undefined && isFailed(former))
  }
  const next = { ...present, attempted, failed }
  const isReached = attempted >= attemptedMin && failed / attempted >= next.share
  return isReached && next.reached === undefined ? { ...next, reached: seq } : next
}
