// Retry job -> another attempt -> outcome. JetStream redelivers the job after a delayed nak. The
// push's last outcome has the number and time of its next attempt, so a crash at any point loses
// nothing.
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"
import type { RetryJob } from "#domain/job.ts"
import type { Message } from "#domain/messages.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { AppendConflict, type NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type Ack, type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { hostOfRetry } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Target } from "../attempt.ts"
import { sealAll } from "../push/encrypt.ts"
import { Origins } from "../push-service/origins.ts"
import { fullMillis } from "../push-service/window.ts"
import type { Turn } from "../rate/turns.ts"
import { type Gone, presentTarget } from "../recipients/audience.ts"
import { isPausedOrOld, makeHold } from "./next-jobs.ts"
import { makePlaces } from "./places.ts"
import {
  cancelledEnd,
  conflictLeaves,
  laterPostponed,
  outcomeSubject,
  provenMillis,
  type Record,
  type Recorded,
  type UnsentEnd,
  unsentResult
} from "./record.ts"
import { lastResult, type NextAttempt, nextAttemptOf, waitOf, withFormer } from "./result.ts"
import type { JobTools, Payload, Payloads } from "./tools.ts"

const left = later(1_000)
/** A read older than this is repeated before the push is sent: the browser may have moved. */
const presentMillis = 100
/** The checks before a push are made again if they took longer: NATS was slow meanwhile. */
const checksMillis = 1_000

interface RetryTools extends JobTools {
  readonly log: EventLog["Service"]
  readonly buckets: Buckets["Service"]
}

/** The present subscription of a push, or the reason why there is none. */
type Present = Target | Gone

/** Returns how a push ends without another attempt; undefined: it gets one. */
export const endOf = (target: Present, expiresAt: number, now: number): UnsentEnd | undefined => {
  if (typeof target === "string") return { fate: "gone", reason: target }
  if (target.stored.suspended !== undefined) return { fate: "dead", reason: "suspended" }
  return now >= expiresAt ? { fate: "expired", reason: "expired" } : undefined
}

/** Fails with the end of the push where it must not be sent any more. */
type Check = Effect.Effect<void, UnsentEnd | NatsUnavailable>

const isEnd = (error: unknown): error is UnsentEnd =>
  typeof error === "object" && error !== null && "fate" in error

const makeAttempt = Effect.fnUntraced(function* <E>(
  tools: RetryTools,
  job: RetryJob,
  next: NextAttempt,
  { to, variantOf }: Payload,
  turn: Turn,
  ready: (check: Check) => Effect.Effect<void, E>
) {
  const { buckets, orderOf, publicKeys, record, send } = tools
  const readAt = yield* monotonicMillis
  const present = yield* presentTarget(buckets, job, to)
  const target = typeof present === "string" ? undefined : present
  const now = yield* Clock.currentTimeMillis
  const ended = (at: number, end: UnsentEnd) => {
    const of = { user: job.user as UserToken, id: job.subscription }
    const result = unsentResult(of, next.number - 1, at, end)
    return { target, result, isDeferredUnsent: false }
  }
  const end = orderOf(job) === "cancel" ? cancelledEnd : endOf(present, job.expiresAt, now)
  if (target === undefined || end !== undefined)
    return ended(now, end ?? { fate: "gone", reason: "left" })
  const { locale, padded } = variantOf(target)
  const bodyOf = () => sealAll([target], () => padded, publicKeys)[0]
  const waitMillisMax = turn.millisMax
  const push = { target, ref: job, bodyOf, lastReason: next.lastReason, waitMillisMax }
  // The push may have waited for minutes in the send queue, and for a permit.
  const check = Effect.gen(function* () {
    if ((yield* monotonicMillis) - readAt < presentMillis) return
    // `send` finds out whether the push has expired.
    const endNow = endOf(yield* presentTarget(buckets, job, to), Number.POSITIVE_INFINITY, 0)
    if (endNow !== undefined) return yield* Effect.fail(endNow)
  })
  const attempt = yield* send(push, ready(check)).pipe(
    Effect.tapError((error) => (error === "held" ? Effect.sync(turn.giveBack) : Effect.void)),
    Effect.catch((error) => (isEnd(error) ? Effect.succeed(error) : Effect.fail(error)))
  )
  if (isEnd(attempt)) return ended(yield* Clock.currentTimeMillis, attempt)
  if (attempt.decidedBy === "process") turn.giveBack()
  const result = yield* record.resultOf({ target, ref: job, attempt, number: next.number, locale })
  const isDeferredUnsent = attempt.kind === "deferred" && attempt.decidedBy === "process"
  return { target, result, isDeferredUnsent }
})

/** False: removals or strikes that follow from the result are postponed. */
const recordResult = Effect.fnUntraced(function* (
  record: Record,
  job: RetryJob,
  next: NextAttempt,
  target: Target | undefined,
  result: PushResult
) {
  const list: ReadonlyArray<Recorded> = target === undefined ? [] : [{ target, result }]
  const final = result.fate !== "retrying"
  yield* record.deadLetters(job, list)
  const body = {
    broadcast: job.broadcast,
    pushes: 0,
    results: [withFormer(job, next, result)],
    final,
    ...(next.firstRun && { run: next.firstRun })
  }
  yield* record.outcome(outcomeSubject.retry(job), next.seq, body)
  record.counted(job, list)
  // A retrying push needs no new retry job: this one is its job.
  return final ? yield* record.followUps(job, list) : true
})

/**
 * Fails with AppendConflict if another worker has recorded the next attempt already: this process
 * may have been frozen, or cut off from NATS, for so long that the job was delivered again.
 */
const checkNext = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  job: RetryJob,
  next: NextAttempt
) {
  if ((yield* monotonicMillis) - next.readAt < provenMillis) return
  const subject = outcomeSubject.retry(job)
  const last = yield* log.last("work", subject)
  if ((last?.seq ?? 0) !== next.seq) return yield* new AppendConflict({ subject })
})

/** Makes the next attempt, and records its result. `postponed`: how to end when writes are. */
const step = (
  tools: RetryTools,
  job: RetryJob,
  next: NextAttempt,
  payload: Payload,
  postponed: Ack
) => {
  const { draining, log, orderOf, permits, record } = tools
  let permitsTaken = 0
  // Taken after the place in the send queue, as everywhere: in the other order two pushes could
  // deadlock.
  const ready = Effect.fnUntraced(function* (turn: Turn, check: Check) {
    yield* permits.take(job.broadcast)
    permitsTaken = 1
    yield* Effect.andThen(checkNext(log, job, next), check).pipe(
      Effect.timed,
      Effect.repeat({ until: ([took]) => Duration.toMillis(took) < checksMillis })
    )
    // Delivered again, the push of a cancelled broadcast ends unsent; that of a paused one waits.
    if (draining() || orderOf(job) !== "send") return yield* Effect.fail("stop" as const)
    if (!(yield* turn.take)) return yield* Effect.fail("stop" as const)
  })
  return Effect.gen(function* () {
    const attempt = (turn: Turn) =>
      makeAttempt(tools, job, next, payload, turn, (check) => ready(turn, check))
    const { isDeferredUnsent, result, target } = yield* tools.turns.inTurn(job, true, attempt)
    const again = result.nextAt === undefined ? done : later(result.nextAt - result.at)
    // Nothing was sent, so nothing is recorded: with a push service closed for an hour, each of its
    // pushes would write an outcome a minute.
    if (isDeferredUnsent && result.nextAt !== undefined) return again
    const isStored = yield* recordResult(record, job, next, target, result)
    return isStored ? again : postponed
  }).pipe(
    Effect.catch((error) =>
      error === "stop" || error === "held" ? Effect.succeed(left) : Effect.fail(error)
    ),
    Effect.ensuring(Effect.suspend(() => permits.release(job.broadcast, permitsTaken)))
  )
}

/** The push has ended. An earlier delivery may have died before it wrote what follows. */
const finish = Effect.fnUntraced(function* (
  { buckets, record }: RetryTools,
  job: RetryJob,
  to: Recipients,
  result: PushResult,
  postponed: Ack
) {
  const target = yield* presentTarget(buckets, job, to)
  if (typeof target === "string") return done
  return (yield* record.followUpsAgain(job, [{ target, result }])) ? done : postponed
})

/** Returns a function that handles retry jobs. */
export const makeRetry = Effect.fnUntraced(function* (jobTools: JobTools, payload: Payloads) {
  const log = yield* EventLog
  const buckets = yield* Buckets
  const tools: RetryTools = { ...jobTools, log, buckets }
  const { draining, orderOf, turns } = tools
  const hold = makeHold(log, tools)
  const placed = makePlaces()
  const origins = yield* Origins

  const handle = Effect.fnUntraced(function* (
    delivery: Delivery,
    job: Message<"retry/1">,
    now: number
  ) {
    const { at: storedAt, deliveryCount } = delivery
    const given = { job, storedAt, isFirstDelivery: deliveryCount === 1 }
    const postponed = laterPostponed(deliveryCount)
    const readAt = yield* monotonicMillis
    const last = yield* log.last("work", outcomeSubject.retry(job))
    const previous = lastResult(last)
    const hasEnded = previous !== undefined && previous.fate !== "retrying"
    if (!hasEnded && isPausedOrOld(tools, job)) return yield* hold(delivery, job)
    const waitMillis = hasEnded || orderOf(job) === "cancel" ? 0 : waitOf(given, last, now)
    if (waitMillis > 0) return later(waitMillis)
    const found = yield* payload(job)
    if (found === undefined) return never("the broadcast is not in the log")
    if (hasEnded) return yield* finish(tools, job, found.to, previous, postponed)
    return yield* step(tools, job, nextAttemptOf(job, last, readAt), found, postponed).pipe(
      conflictLeaves
    )
  })

  return Effect.fnUntraced(function* (delivery: Delivery) {
    const { at, deliveryCount, message: job } = delivery
    if (job.type !== "retry/1")
      return never(job.type === "malformed" ? job.reason : "not a retry job")
    const now = yield* Clock.currentTimeMillis
    if (deliveryCount === 1 && orderOf(job) === "send") {
      const waitMillis = waitOf({ job, storedAt: at, isFirstDelivery: true }, undefined, now)
      if (waitMillis > 0) return later(waitMillis)
    }
    if (draining()) return left
    const postponedMillis = yield* turns.postponed(job)
    if (postponedMillis > 0) return later(postponedMillis)
    const full = later(fullMillis(now - job.acceptedAt))
    const share = origins.shareOf(hostOfRetry(delivery.subject))
    return yield* placed(share, handle(delivery, job, now), full)
  })
})
