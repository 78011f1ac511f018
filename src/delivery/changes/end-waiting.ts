// Ends the retries of a cancelled broadcast that wait: JetStream would bring their jobs back in up
// to 24 h.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { BroadcastRef, RetryJob } from "#domain/job.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { lastResult, nextAttemptOf, waitOf, withFormer } from "../jobs/next-attempt.ts"
import { cancelledEnd, outcomeSubject, unsentResult } from "../jobs/record/record.ts"
import type { JobTools } from "../jobs/tools.ts"
import { eachMessage } from "./each-message.ts"

/** A retry that is due sooner is left to its worker, which may be sending it. */
const dueMillis = 1_000

type Tools = Pick<JobTools, "record"> & { readonly log: EventLog["Service"] }

/** A push that waits for another attempt. */
type Waiting = Pick<
  RetryJob,
  "broadcast" | "channel" | "user" | "subscription" | "service" | "attempts" | "reason"
>

/** Ends a push, unless it has ended. `isDue`: given its last outcome, a worker will end it. */
const endOne = Effect.fnUntraced(function* (
  { log, record }: Tools,
  push: Waiting,
  isDue: (last: Stored | undefined, now: number) => boolean
) {
  const subject = outcomeSubject.retry(push)
  const last = yield* log.last("work", subject)
  const previous = lastResult(last)
  if (previous !== undefined && previous.fate !== "retrying") return
  const now = yield* Clock.currentTimeMillis
  if (isDue(last, now)) return
  const of = { user: push.user as UserToken, id: push.subscription }
  const next = nextAttemptOf(push, last, 0)
  const result = withFormer(push, next, unsentResult(of, next.number - 1, now, cancelledEnd))
  const body = { broadcast: push.broadcast, pushes: 0, results: [result], final: true }
  // After a conflict, the worker that made an attempt meanwhile has recorded it.
  yield* Effect.catchTag(
    record.outcome(subject, last?.seq ?? 0, body),
    "AppendConflict",
    () => Effect.void
  )
})

/** Ends the retries of a broadcast that wait, by their jobs. */
export const endWaiting = (tools: Tools, broadcast: number) =>
  eachMessage(tools.log, "retry/1", filters.retriesOf(broadcast), ({ message: job, storedAt }) =>
    endOne(
      tools,
      job,
      (last, now) => waitOf({ job, storedAt, isFirstDelivery: false }, last, now) <= dueMillis
    )
  )

/**
 * Ends the retries of a broadcast whose jobs somebody purged, by the outcomes of its shards. Call
 * it only where `endWaiting` did not suffice, as it reads all outcomes, and when no attempt is
 * under way any more.
 */
export const endLost = (
  tools: Tools,
  { broadcast, channel }: Pick<BroadcastRef, "broadcast" | "channel">
) => {
  const filter = filters.shardOutcomesIn(channel as ChannelToken, broadcast)
  return eachMessage(tools.log, "outcome/1", filter, ({ message: { results } }) =>
    Effect.forEach(
      results.filter(({ fate }) => fate === "retrying"),
      ({ attempt: attempts, ...push }) =>
        endOne(tools, { broadcast, channel, attempts, ...push }, () => false),
      { discard: true }
    )
  )
}
