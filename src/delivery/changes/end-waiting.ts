// Ends the retries of a cancelled broadcast that wait: JetStream would bring their jobs back in up
// to 24 h.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { EventLog } from "#nats/stream/event-log.ts"
import { filters } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { lastResult, nextAttemptOf, waitOf, withFormer } from "../jobs/next-attempt.ts"
import { cancelledEnd, outcomeSubject, unsentResult } from "../jobs/record/record.ts"
import type { JobTools } from "../jobs/tools.ts"
import { eachJob, type StoredJob } from "./each-job.ts"

/** A retry that is due sooner is left to its worker, which may be sending it. */
const dueMillis = 1_000

type Tools = Pick<JobTools, "record"> & { readonly log: EventLog["Service"] }

/** Ends a push, unless it has ended or its next attempt is due. */
const endOne = Effect.fnUntraced(function* (
  { log, record }: Tools,
  { job, storedAt }: StoredJob<"retry/1">
) {
  const subject = outcomeSubject.retry(job)
  const last = yield* log.last("work", subject)
  const previous = lastResult(last)
  if (previous !== undefined && previous.fate !== "retrying") return
  const now = yield* Clock.currentTimeMillis
  if (waitOf({ job, storedAt, isFirstDelivery: false }, last, now) <= dueMillis) return
  const push = { user: job.user as UserToken, id: job.subscription }
  const next = nextAttemptOf(job, last, 0)
  const result = withFormer(job, next, unsentResult(push, next.number - 1, now, cancelledEnd))
  const body = { broadcast: job.broadcast, pushes: 0, results: [result], final: true }
  // After a conflict, the worker that made an attempt meanwhile has recorded it.
  yield* Effect.catchTag(
    record.outcome(subject, last?.seq ?? 0, body),
    "AppendConflict",
    () => Effect.void
  )
})

export const endWaiting = (tools: Tools, broadcast: number) =>
  eachJob(tools.log, "retry/1", filters.retriesOf(broadcast), (stored) => endOne(tools, stored))
