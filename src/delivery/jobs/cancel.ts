// Ends the retries of a cancelled broadcast that wait: JetStream would bring their jobs back in up
// to 24 h. The fact is delivered again until the broadcast is finished, because a worker that had
// not heard of it may store a retry later.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import type { RetryJob } from "#domain/job.ts"
import type { Message } from "#domain/messages/messages.ts"
import { type Delivery, done, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { laterPostponed } from "./follow-ups.ts"
import { lastResult, waitOf } from "./next-attempt.ts"
import { cancelledEnd, outcomeSubject, unsentResult } from "./record.ts"
import type { JobTools } from "./tools.ts"

/** A retry that is due sooner is left to its worker, which may be sending it. */
const dueMillis = 1_000
/** Retry jobs that are looked at together. */
const atOnce = 64

interface Waiting {
  readonly job: RetryJob
  readonly storedAt: number
}

type Tools = Pick<JobTools, "record"> & { readonly log: EventLog["Service"] }

/** Ends a push, unless it has ended or its next attempt is due. */
const endOne = Effect.fnUntraced(function* ({ log, record }: Tools, { job, storedAt }: Waiting) {
  const subject = outcomeSubject.retry(job)
  const last = yield* log.last("work", subject)
  const previous = lastResult(last)
  if (previous !== undefined && previous.fate !== "retrying") return
  const now = yield* Clock.currentTimeMillis
  if (waitOf({ job, storedAt, isFirstDelivery: false }, last, now) <= dueMillis) return
  const push = { user: job.user as UserToken, id: job.subscription }
  const result = unsentResult(push, previous?.attempt ?? job.attempts, now, cancelledEnd)
  const body = { broadcast: job.broadcast, pushes: 0, results: [result], final: true }
  // After a conflict, the worker that made an attempt meanwhile has recorded it.
  yield* Effect.catchTag(
    record.outcome(subject, last?.seq ?? 0, body),
    "AppendConflict",
    () => Effect.void
  )
})

const endWaiting = Effect.fnUntraced(function* (tools: Tools, broadcast: number) {
  let some: Array<Waiting> = []
  const endSome = Effect.suspend(() => {
    const list = some
    some = []
    return Effect.forEach(list, (each) => endOne(tools, each), {
      concurrency: atOnce,
      discard: true
    })
  })
  yield* tools.log.replay("work", [filters.retriesOf(broadcast)], ({ at, message }) => {
    if (message.type === "retry/1") some.push({ job: message, storedAt: at })
    return some.length < atOnce ? undefined : endSome
  })
  yield* endSome
})

/** Whether nothing of a broadcast can wait any more. */
const isOver = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { at, broadcast, channel }: Message<"broadcast.cancelled/1">
) {
  if ((yield* Clock.currentTimeMillis) >= at + ttlSecondsMax * 1000) return true
  for (const subject of [
    subjects.finished(channel as ChannelToken, broadcast),
    subjects.rejected(broadcast)
  ])
    if ((yield* log.last("log", subject)) !== undefined) return true
  return false
})

/** Returns a function that handles cancellations. */
export const makeCancel = Effect.fnUntraced(function* ({ record }: JobTools) {
  const log = yield* EventLog
  return Effect.fnUntraced(function* ({ deliveryCount, message }: Delivery) {
    if (message.type !== "broadcast.cancelled/1")
      return never(message.type === "malformed" ? message.reason : "no cancellation")
    const { broadcast, by } = message
    if (deliveryCount === 1) yield* Effect.logInfo("broadcast cancelled", { broadcast, by })
    if (yield* isOver(log, message)) return done
    yield* endWaiting({ log, record }, broadcast)
    return laterPostponed(deliveryCount)
  })
})
