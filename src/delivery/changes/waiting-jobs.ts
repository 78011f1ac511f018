// The jobs of a broadcast that wait in WORK: appended once more for a new run, or ended because the
// broadcast was cancelled.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { BroadcastRef, RetryJob } from "#domain/job.ts"
import type { Message } from "#domain/messages/table.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { HandlerProgress } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { appendForRun } from "../jobs/next-jobs.ts"
import { outcomeSubject, writeOutcome } from "../jobs/record.ts"
import {
  cancelledEnd,
  lastResult,
  nextAttemptOf,
  unsentResult,
  waitOf,
  withFormer
} from "../jobs/result.ts"

/**
 * A pass remembers so many retries that it has looked at, in 8 MB. It asks NATS about each of the
 * others once for each earlier run.
 */
const seenMax = 50_000
/** A retry that is due sooner is left to its worker, which may be sending it. */
const dueMillis = 1_000
/** Messages that are handled at the same time. */
const messagesAtOnce = 64

/** A run of a broadcast. */
interface Run {
  readonly broadcast: number
  readonly run: number
}

/**
 * Appends the jobs of a run. All shards get one, also finished ones, because removals and retries
 * that follow from their outcomes may be missing. Retries get one only with `isSettled`: no attempt
 * of an earlier run is under way. Shards need not wait: their outcomes say which worker has them.
 * `isOvertaken`: whether a later change is known, which makes jobs of this run useless. A job has a
 * subject of its own in each run, so that a second time changes nothing.
 */
export const beginRun = Effect.fnUntraced(function* (
  of: Run,
  isSettled: boolean,
  isOvertaken: () => boolean
) {
  const { broadcast, run } = of
  const isWanted = (job: { readonly run?: number }) => runIn(job) < run && !isOvertaken()
  const latest = yield* latestRuns(of)
  yield* eachMessage(
    "shard",
    filters.shardsOf(broadcast),
    ({ message: job, storedAt, subject }) => {
      const isLatest = runIn(job) >= (latest.get(subjects.jobOfRun(subject, run)) ?? 0)
      return isLatest && isWanted(job) ? appendForRun({ job, storedAt, subject }, run) : Effect.void
    }
  )
  if (!isSettled) return
  const seen = new Set<string>()
  yield* eachMessage("retry", filters.retriesOf(broadcast), (stored) => {
    const place = subjects.jobOfRun(stored.subject, run)
    if (seen.has(place) || !isWanted(stored.message)) return Effect.void
    if (seen.size < seenMax) seen.add(place)
    return appendUnended(stored, run)
  })
})

const runIn = ({ run = 0 }: { readonly run?: number }) => run

/** The latest run that each shard has a job of. A broadcast has at most 65,536 shards. */
const latestRuns = Effect.fnUntraced(function* ({ broadcast, run }: Run) {
  const latest = new Map<string, number>()
  yield* eachMessage("shard", filters.shardsOf(broadcast), ({ message: job, subject }) =>
    Effect.sync(() => {
      const place = subjects.jobOfRun(subject, run)
      latest.set(place, Math.max(latest.get(place) ?? 0, runIn(job)))
    })
  )
  return latest
})

/** Appends a retry for a run, unless its push has ended. */
const appendUnended = Effect.fnUntraced(function* (
  { message: job, storedAt, subject }: StoredMessage<"retry">,
  run: number
) {
  const previous = lastResult(yield* (yield* EventLog).last("work", outcomeSubject.retry(job)))
  if (previous !== undefined && previous.fate !== "retrying") return
  yield* appendForRun({ job, storedAt, subject }, run)
})

/**
 * Ends the retries of a cancelled broadcast that wait, by their jobs, which JetStream would bring
 * back in up to 24 h.
 */
export const endWaiting = (broadcast: number) =>
  eachMessage("retry", filters.retriesOf(broadcast), ({ message: job, storedAt }) =>
    endOne(
      job,
      (last, now) => waitOf({ job, storedAt, isFirstDelivery: false }, last, now) <= dueMillis
    )
  )

/**
 * Ends the retries of a broadcast whose jobs somebody purged, by the outcomes of its shards. Call
 * it only where `endWaiting` did not suffice, as it reads all outcomes, and when no attempt is
 * under way any more.
 */
export const endLost = ({ broadcast, channel }: Pick<BroadcastRef, "broadcast" | "channel">) => {
  const filter = filters.shardOutcomesIn(channel as ChannelToken, broadcast)
  return eachMessage("outcome", filter, ({ message: { results } }) =>
    Effect.forEach(
      results.filter(({ fate }) => fate === "retrying"),
      ({ attempt: attempts, ...push }) =>
        endOne({ broadcast, channel, attempts, ...push }, () => false),
      { discard: true }
    )
  )
}

/** A push that waits for another attempt. */
type Waiting = Pick<
  RetryJob,
  "broadcast" | "channel" | "user" | "subscription" | "service" | "locale" | "attempts" | "reason"
>

/** Ends a push, unless it has ended. `isDue`: given its last outcome, a worker will end it. */
const endOne = Effect.fnUntraced(function* (
  push: Waiting,
  isDue: (last: Stored | undefined, now: number) => boolean
) {
  const subject = outcomeSubject.retry(push)
  const last = yield* (yield* EventLog).last("work", subject)
  const previous = lastResult(last)
  if (previous !== undefined && previous.fate !== "retrying") return
  const now = yield* Clock.currentTimeMillis
  if (isDue(last, now)) return
  const next = nextAttemptOf(push, last, 0)
  const of = { user: push.user as UserToken, id: push.subscription, locale: next.lastLocale }
  const result = withFormer(push, next, unsentResult(of, next.number - 1, now, cancelledEnd))
  const body = { broadcast: push.broadcast, pushes: 0, results: [result], final: true }
  // After a conflict, the worker that made an attempt meanwhile has recorded it.
  yield* Effect.catchTag(
    writeOutcome(subject, last?.seq ?? 0, body),
    "AppendConflict",
    () => Effect.void
  )
})

type Kind = "shard" | "retry" | "outcome"

interface StoredMessage<T extends Kind> {
  readonly message: Message<T>
  readonly subject: string
  readonly storedAt: number
}

/** Reads messages, and does something with each, several at a time. */
const eachMessage = Effect.fnUntraced(function* <T extends Kind, R>(
  type: T,
  filter: string,
  each: (stored: StoredMessage<T>) => Effect.Effect<void, NatsUnavailable, R>
) {
  let some: Array<StoredMessage<T>> = []
  const handleSome = Effect.suspend(() => {
    const list = some
    some = []
    return Effect.forEach(list, each, { concurrency: messagesAtOnce, discard: true }).pipe(
      Effect.andThen(Effect.flatMap(HandlerProgress, ({ goesOn }) => goesOn))
    )
  })
  yield* (yield* EventLog).replay("work", [filter], ({ at, message, subject }) => {
    if (message.type === type) some.push({ message: message as Message<T>, subject, storedAt: at })
    return some.length < messagesAtOnce ? undefined : handleSome
  })
  yield* handleSome
})
