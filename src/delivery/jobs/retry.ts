// Retry job -> another attempt -> outcome. JetStream redelivers the job after a delayed nak. The
// push's last outcome has the number and time of its next attempt, so a crash at any point loses
// nothing.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { States } from "#broadcasts/states.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import type { RetryJob } from "#domain/job.ts"
import type { Message } from "#domain/messages/table.ts"
import type { PushResult } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import { AppendConflict, type NatsUnavailable } from "#nats/connection/errors.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { type Ack, type Delivery, done, later, never } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { hostOfRetry } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Target } from "../attempt.ts"
import { Draining } from "../draining.ts"
import { PublicKeys, sealAll } from "../push/encrypt.ts"
import { send } from "../push/send.ts"
import { Origins, type Share } from "../push-service/origins.ts"
import { fullMillis } from "../push-service/window.ts"
import { inTurn, postponed, type Turn } from "../rate/turns.ts"
import { type Gone, presentTarget } from "../recipients/audience.ts"
import { endPaused, isPausedOrOld } from "./next-jobs.ts"
import { type Payload, Payloads } from "./payload.ts"
import {
  deadLetter,
  outcomeSubject,
  Permits,
  provenMillis,
  resultNow,
  writeFollowUpsAgain,
  writeInOrder,
  writeOutcome
} from "./record.ts"
import {
  cancelledEnd,
  defectEnd,
  lastResult,
  type NextAttempt,
  nextAttemptOf,
  type Recorded,
  type UnsentEnd,
  unsentResult,
  waitOf,
  withFormer
} from "./result.ts"
import { conflictLeaves, laterPostponed } from "./writes.ts"

const left = later(1_000)
/** A read older than this is repeated before the push is sent: the browser may have moved. */
const presentMillis = 100
/** The checks before a push are made again if they took longer: NATS was slow meanwhile. */
const checksMillis = 1_000

/** Handles a retry job. */
export const handleRetry = Effect.fnUntraced(function* (delivery: Delivery) {
  const { at, deliveryCount, message: job } = delivery
  if (job.type !== "retry") return never(job.type === "malformed" ? job.reason : "not a retry job")
  const now = yield* Clock.currentTimeMillis
  const { demandRead, orderOf } = yield* States
  yield* demandRead(job.broadcast)
  if (deliveryCount === 1 && orderOf(job) === "send") {
    const waitMillis = waitOf({ job, storedAt: at, isFirstDelivery: true }, undefined, now)
    if (waitMillis > 0) return later(waitMillis)
  }
  if ((yield* Draining).isDraining()) return left
  const turnMillis = yield* postponed(job)
  if (turnMillis > 0) return later(turnMillis)
  const share = (yield* Origins).shareOf(hostOfRetry(delivery.subject))
  const full = later(fullMillis(now - job.acceptedAt))
  return yield* (yield* RetryPlaces)(share, handlePlaced(delivery, job, now), full)
})

const handlePlaced = Effect.fnUntraced(function* (
  delivery: Delivery,
  job: Message<"retry">,
  now: number
) {
  const { at: storedAt, deliveryCount } = delivery
  const { orderOf } = yield* States
  const postponedAck = laterPostponed(deliveryCount)
  const readAt = yield* monotonicMillis
  const last = yield* (yield* EventLog).last("work", outcomeSubject.retry(job))
  const previous = lastResult(last)
  const hasEnded = previous !== undefined && previous.fate !== "retrying"
  if (!hasEnded && isPausedOrOld(orderOf(job)))
    return yield* endPaused(delivery, job, Effect.succeed(true))
  const stored = { job, storedAt, isFirstDelivery: deliveryCount === 1 }
  const waitMillis = hasEnded || orderOf(job) === "cancel" ? 0 : waitOf(stored, last, now)
  if (waitMillis > 0) return later(waitMillis)
  const payload = yield* (yield* Payloads).of(job)
  if (payload === undefined) return never("the broadcast is not in the log")
  if (hasEnded) return yield* finish(job, payload.to, previous, postponedAck)
  const next = nextAttemptOf(job, last, readAt)
  return yield* attemptAndRecord(job, next, payload, postponedAck).pipe(conflictLeaves)
})

/** The push has ended. An earlier delivery may have died before it wrote what follows. */
const finish = Effect.fnUntraced(function* (
  job: RetryJob,
  to: Recipients,
  result: PushResult,
  postponedAck: Ack
) {
  const target = yield* presentTarget(job, to)
  if (typeof target === "string") return done
  return (yield* writeFollowUpsAgain(job, [{ target, result }])) ? done : postponedAck
})

/** Makes the next attempt, and records its result. `postponedAck`: how to end if writes are. */
const attemptAndRecord = (
  job: RetryJob,
  next: NextAttempt,
  payload: Payload,
  postponedAck: Ack
) => {
  let permitsTaken = 0
  // Taken after the place in the send queue, as everywhere: in the other order two pushes could
  // deadlock.
  const ready = Effect.fnUntraced(function* (turn: Turn, check: Check) {
    yield* (yield* Permits).take(job.broadcast)
    permitsTaken = 1
    const checked = Effect.map(
      Effect.timed(Effect.andThen(checkNext(job, next), check)),
      ([took]) => Duration.toMillis(took) < checksMillis
    )
    // Others need its place and its permit: a push that waits for NATS gives them back.
    if (!(yield* checked) && !(yield* checked)) return yield* Effect.fail("stop" as const)
    const { isDraining } = yield* Draining
    const { orderOf } = yield* States
    // Delivered again, the push of a cancelled broadcast ends unsent; that of a paused one waits.
    if (isDraining() || orderOf(job) !== "send") return yield* Effect.fail("stop" as const)
    if (!(yield* turn.take)) return yield* Effect.fail("stop" as const)
  })
  return Effect.gen(function* () {
    const attempt = (turn: Turn) =>
      makeAttempt(job, next, payload, turn, (check) => ready(turn, check))
    const { isDeferredUnsent, result, target } = yield* inTurn(job, true, attempt)
    const again = result.nextAt === undefined ? done : later(result.nextAt - result.at)
    // Nothing was sent, so nothing is recorded: with a push service closed for an hour, each of its
    // pushes would write an outcome a minute.
    if (isDeferredUnsent && result.nextAt !== undefined) return again
    return (yield* recordResult(job, next, target, result)) ? again : postponedAck
  }).pipe(
    Effect.catch((error) =>
      error === "stop" || error === "withdrawn" ? Effect.succeed(left) : Effect.fail(error)
    ),
    Effect.ensuring(
      Effect.flatMap(Permits, (permits) => permits.release(job.broadcast, permitsTaken))
    )
  )
}

/** Fails with the end of the push where it must not be sent any more. */
type Check = Effect.Effect<void, UnsentEnd | NatsUnavailable, Buckets>

const makeAttempt = Effect.fnUntraced(function* <E, R>(
  job: RetryJob,
  next: NextAttempt,
  { to, variantOf }: Payload,
  turn: Turn,
  ready: (check: Check) => Effect.Effect<void, E, R>
) {
  const readAt = yield* monotonicMillis
  const present = yield* presentTarget(job, to)
  const target = typeof present === "string" ? undefined : present
  const now = yield* Clock.currentTimeMillis
  const ended = (at: number, end: UnsentEnd) => {
    const of = { user: job.user as UserToken, id: job.subscription, locale: next.lastLocale }
    const result = unsentResult(of, next.number - 1, at, end)
    return { target, result, isDeferredUnsent: false }
  }
  const { orderOf } = yield* States
  const end = orderOf(job) === "cancel" ? cancelledEnd : endOf(present, job.expiresAt, now)
  if (target === undefined || end !== undefined)
    return ended(now, end ?? { fate: "gone", reason: "left" })
  const { locale, padded } = variantOf(target)
  const publicKeys = yield* PublicKeys
  const bodyOf = () => sealAll([target], () => padded, publicKeys)[0]
  const waitMillisMax = turn.millisMax
  const push = { target, ref: job, bodyOf, lastReason: next.lastReason, waitMillisMax }
  // The push may have waited for minutes in the send queue, and for a permit.
  const check = Effect.gen(function* () {
    if ((yield* monotonicMillis) - readAt < presentMillis) return
    // `send` finds out whether the push has expired.
    const endNow = endOf(yield* presentTarget(job, to), Number.POSITIVE_INFINITY, 0)
    if (endNow !== undefined) return yield* Effect.fail(endNow)
  })
  const attempt = yield* send(push, ready(check)).pipe(
    Effect.tapError((error) => (error === "withdrawn" ? Effect.sync(turn.giveBack) : Effect.void)),
    Effect.catch((error) => (isEnd(error) ? Effect.succeed(error) : Effect.fail(error)))
  )
  if (isEnd(attempt)) return ended(yield* Clock.currentTimeMillis, attempt)
  if (attempt.decidedBy === "process") turn.giveBack()
  const result = yield* resultNow({ target, ref: job, attempt, number: next.number, locale })
  const isDeferredUnsent = attempt.kind === "deferred" && attempt.decidedBy === "process"
  return { target, result, isDeferredUnsent }
})

const isEnd = (error: unknown): error is UnsentEnd =>
  typeof error === "object" && error !== null && "fate" in error

/**
 * Returns how a push ends without another attempt; undefined: it gets one. `present`: its
 * subscription, or the reason why there is none.
 */
export const endOf = (
  present: Target | Gone,
  expiresAt: number,
  now: number
): UnsentEnd | undefined => {
  if (typeof present === "string") return { fate: "gone", reason: present }
  if (present.stored.suspended !== undefined) return { fate: "dead", reason: "suspended" }
  return now >= expiresAt ? { fate: "expired", reason: "expired" } : undefined
}

/**
 * Fails with AppendConflict if another worker has recorded the next attempt already: this process
 * may have been frozen, or cut off from NATS, for so long that the job was delivered again.
 */
const checkNext = Effect.fnUntraced(function* (job: RetryJob, next: NextAttempt) {
  if ((yield* monotonicMillis) - next.readAt < provenMillis) return
  const subject = outcomeSubject.retry(job)
  const last = yield* (yield* EventLog).last("work", subject)
  if ((last?.seq ?? 0) !== next.seq) return yield* new AppendConflict({ subject })
})

/** False: removals or strikes that follow from the result are postponed. */
const recordResult = Effect.fnUntraced(function* (
  job: RetryJob,
  next: NextAttempt,
  target: Target | undefined,
  result: PushResult
) {
  const list: ReadonlyArray<Recorded> = target === undefined ? [] : [{ target, result }]
  const final = result.fate !== "retrying"
  const body = {
    broadcast: job.broadcast,
    pushes: 0,
    results: [withFormer(job, next, result)],
    final,
    ...(next.firstRun && { run: next.firstRun })
  }
  const append = writeOutcome(outcomeSubject.retry(job), next.seq, body)
  // A retrying push needs no new retry job: this one is its job.
  return yield* writeInOrder(job, list, Effect.asVoid(append), final)
})

/**
 * Ends a job on which its worker dies again and again: the push is dead, with a dead letter, so
 * that its broadcast finishes, the audit shows it, and a redrive may send it. Does as little as can
 * be: the defect may be in anything else. Returns how to acknowledge the job.
 */
export const giveUpRetry = Effect.fnUntraced(function* (
  { message: job }: Delivery,
  reason: string
) {
  if (job.type !== "retry") return never(reason)
  const log = yield* EventLog
  const subject = outcomeSubject.retry(job)
  const last = yield* log.last("work", subject)
  const previous = lastResult(last)
  if (previous !== undefined && previous.fate !== "retrying") return never(reason)
  const next = nextAttemptOf(job, last, yield* monotonicMillis)
  const at = yield* Clock.currentTimeMillis
  const target = { id: job.subscription, user: job.user as UserToken, locale: next.lastLocale }
  const result = withFormer(job, next, unsentResult(target, next.number - 1, at, defectEnd))
  const { attempts: _, firstRun: __, firstWaitMillis: ___, type: ____, locale: _____, ...ref } = job
  yield* log.once("work", deadLetter(ref, result, job.generation))
  const outcome = { broadcast: job.broadcast, pushes: 0, results: [result], final: true, at }
  const body = { ...outcome, ...(next.firstRun && { run: next.firstRun }) }
  yield* log.append("work", { subject, type: "outcome", body, expect: next.seq })
  return never(reason)
}, conflictLeaves)

/** Retries to one push service at a time. */
const atPushServiceMax = 64
/** Retries at a time to hosts that share their places. A wildcard has two such shares. */
const inSharedMax = atPushServiceMax / 2
/** Retries at a time: three slow push services leave places to the others. */
export const retriesAtOnce = 4 * atPushServiceMax

/** Makes the places. The function that it returns runs `retry`, or at once `full`. */
export const makePlaces = () => {
  /** By the name of a share; none: no retry is under way. */
  const taken = new Map<string, number>()
  const add = (name: string, change: number) => {
    const count = (taken.get(name) ?? 0) + change
    if (count > 0) taken.set(name, count)
    else taken.delete(name)
  }
  return <A, E, R, B>({ isOwn, name }: Share, retry: Effect.Effect<A, E, R>, full: B) =>
    Effect.suspend((): Effect.Effect<A | B, E, R> => {
      const max = isOwn ? atPushServiceMax : inSharedMax
      if ((taken.get(name) ?? 0) >= max) return Effect.succeed(full)
      add(name, 1)
      return Effect.ensuring(
        retry,
        Effect.sync(() => add(name, -1))
      )
    })
}

/**
 * Places for retries in a process. One push service has only some of them, so that retries to the
 * others do not wait for its responses.
 */
export class RetryPlaces extends Context.Service<RetryPlaces, ReturnType<typeof makePlaces>>()(
  "bellcast/delivery/RetryPlaces"
) {
  static readonly layer = Layer.sync(RetryPlaces, makePlaces)
}
