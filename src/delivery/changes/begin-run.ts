// The jobs of a new run of a broadcast: those of earlier runs once more. Each has a subject of its
// own, so that a second time changes nothing.
import * as Effect from "effect/Effect"
import type { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { lastResult } from "../jobs/next-attempt.ts"
import { handOn } from "../jobs/next-jobs.ts"
import { outcomeSubject } from "../jobs/record/record.ts"
import { eachMessage, type StoredMessage } from "./each-message.ts"

type Log = EventLog["Service"]

const againOne = Effect.fnUntraced(function* (
  log: Log,
  { message: job, storedAt, subject }: StoredMessage<"retry/1">,
  run: number
) {
  const previous = lastResult(yield* log.last("work", outcomeSubject.retry(job)))
  if (previous !== undefined && previous.fate !== "retrying") return
  yield* handOn(log, { job, storedAt, subject }, run)
})

interface Run {
  readonly broadcast: number
  readonly run: number
}

const runIn = ({ run = 0 }: { readonly run?: number }) => run

/** The latest run that each shard has a job of. A broadcast has at most 65,536 shards. */
const latestRuns = Effect.fnUntraced(function* (log: Log, { broadcast, run }: Run) {
  const latest = new Map<string, number>()
  yield* eachMessage(log, "shard/1", filters.shardsOf(broadcast), ({ message: job, subject }) =>
    Effect.sync(() => {
      const place = subjects.jobOfRun(subject, run)
      latest.set(place, Math.max(latest.get(place) ?? 0, runIn(job)))
    })
  )
  return latest
})

/**
 * A pass remembers so many retries that it has looked at, in 8 MB. It asks NATS about each of the
 * others once for each earlier run.
 */
const seenMax = 50_000

/**
 * Appends the jobs of a run. All shards get one, also finished ones, because removals and retries
 * that follow from their outcomes may be missing. Retries get one only with `isSettled`: no attempt
 * of an earlier run is under way. Shards need not wait: their outcomes say which worker has them.
 * `isOvertaken`: whether a later change is known, which makes jobs of this run useless.
 */
export const beginRun = Effect.fnUntraced(function* (
  log: Log,
  of: Run,
  isSettled: boolean,
  isOvertaken: () => boolean
) {
  const { broadcast, run } = of
  const isWanted = (job: { readonly run?: number }) => runIn(job) < run && !isOvertaken()
  const latest = yield* latestRuns(log, of)
  yield* eachMessage(
    log,
    "shard/1",
    filters.shardsOf(broadcast),
    ({ message: job, storedAt, subject }) => {
      const isLatest = runIn(job) >= (latest.get(subjects.jobOfRun(subject, run)) ?? 0)
      return isLatest && isWanted(job) ? handOn(log, { job, storedAt, subject }, run) : Effect.void
    }
  )
  if (!isSettled) return
  const seen = new Set<string>()
  yield* eachMessage(log, "retry/1", filters.retriesOf(broadcast), (stored) => {
    const place = subjects.jobOfRun(stored.subject, run)
    if (seen.has(place) || !isWanted(stored.message)) return Effect.void
    if (seen.size < seenMax) seen.add(place)
    return againOne(log, stored, run)
  })
})
