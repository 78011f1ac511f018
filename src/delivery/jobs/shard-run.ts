// One delivery of a shard job: sends its pushes and records their results in batches. A push has a
// permit from before it is sent until its outcome is stored. So a crash sends at most as many
// pushes twice as there are permits. A push is sent only while a stored outcome proves that the
// shard is still this worker's.
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { monotonicMillis } from "#clock/monotonic.ts"
import type { ShardJob } from "#domain/job.ts"
import { pushKey } from "#domain/outcome.ts"
import type { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { Bodies } from "../push/encrypt.ts"
import type { Target } from "../push/target.ts"
import { shareOf } from "../rate/share.ts"
import type { Turn } from "../rate/turns.ts"
import type { Audience } from "../recipients/audience.ts"
import { type Claimed, isClaimed, type Past } from "./claim.ts"
import type { Recorded } from "./follow-ups.ts"
import type { Payload } from "./payloads.ts"
import type { Begin } from "./push-batches.ts"
import { cancelledEnd, outcomeSubject, provenMillis, unsentResult } from "./record.ts"
import type { ShardTools } from "./tools.ts"

/** Results in one outcome message: 64 of about 200 bytes are a third of what WORK takes. */
const resultsMax = 64
/** How long a result waits for others to be recorded with. */
const flushMillis = 20

/** The state of one delivery of a shard job. */
interface ShardRun {
  readonly tools: ShardTools
  readonly job: ShardJob
  readonly subject: string
  readonly check: Audience["check"]
  readonly bodies: Bodies
  readonly variantOf: Payload["variantOf"]
  readonly begin: Begin
  /** When the rest of the shard is left to the next delivery, by the monotonic clock. */
  readonly leaveAt: number
  readonly flushing: Semaphore.Semaphore
  readonly results: Array<Recorded & { readonly permit: boolean }>
  /** Open while results wait to be recorded. */
  readonly hasResults: Latch.Latch
  /** Sequence of the last outcome. */
  seq: number
  /** When the append of the last outcome began, by the monotonic clock. */
  provenAt: number
  /** Permits of this shard's pushes. */
  permits: number
  /** Pushes left to the next delivery of the job. */
  left: number
  /** Removals, strikes or retries are not stored: the next delivery of the job stores them. */
  isPostponed: boolean
  /** Set when an outcome cannot be written: nothing more is sent, and later writes fail too. */
  failure: Cause.Cause<AppendConflict | NatsUnavailable> | undefined
}

const release = (run: ShardRun, count: number) => {
  run.permits -= count
  return run.tools.permits.release(run.job.broadcast, count)
}

/** Whether an outcome of this delivery was stored so recently that no other can have the shard. */
const isProven = (run: ShardRun) =>
  Effect.map(monotonicMillis, (now) => now - run.provenAt < provenMillis)

/** `end`: nothing follows, because all is recorded (`final`) or the shard is left (`released`). */
const write = Effect.fnUntraced(function* (run: ShardRun, end?: "final" | "released") {
  const { job, subject } = run
  const { record } = run.tools
  const list = run.results.splice(0, resultsMax)
  if (list.length === 0 && end === undefined && (yield* isProven(run))) return
  const final = end === "final"
  const body = { broadcast: job.broadcast, pushes: 0, ...(job.run && { run: job.run }) }
  yield* record.deadLetters(job, list)
  // Before the append: the process may be frozen between the storage and the acknowledgement.
  const provenAt = yield* monotonicMillis
  // A broadcast is finished only after the removals that it caused: so they come before the final
  // outcome, unless they are postponed.
  const hasRemovals = list.some(({ result: { fate } }) => fate === "gone" || fate === "dead")
  run.seq = yield* record.outcome(subject, run.seq, {
    ...body,
    results: list.map(({ result }) => result),
    final: final && !hasRemovals,
    ...(end === "released" && { released: true })
  })
  run.provenAt = provenAt
  record.counted(job, list)
  if (!(yield* record.followUps(job, list))) run.isPostponed = true
  if (final && hasRemovals)
    run.seq = yield* record.outcome(subject, run.seq, { ...body, results: [], final })
  yield* release(run, list.filter(({ permit }) => permit).length)
})

/**
 * Records results. When a write fails, it gives back all permits, so that waiting pushes see the
 * failure.
 */
const flush = (run: ShardRun, end?: "final" | "released") =>
  Effect.suspend(() =>
    run.failure === undefined ? write(run, end) : Effect.failCause(run.failure)
  ).pipe(
    Effect.tapCause((cause) =>
      Effect.suspend(() => {
        run.failure ??= cause
        return release(run, run.permits)
      })
    ),
    run.flushing.withPermit,
    Effect.uninterruptible
  )

/**
 * Records results 20 ms after the first of them. Without it, they would hold permits that the next
 * pushes need.
 */
const flushWhenDue = (run: ShardRun) =>
  run.hasResults.await.pipe(
    Effect.andThen(run.hasResults.close),
    Effect.andThen(Effect.delay(flush(run), flushMillis)),
    Effect.forever
  )

const flushRest = Effect.fnUntraced(function* (run: ShardRun) {
  while (run.results.length > resultsMax) yield* flush(run)
  yield* flush(run, run.left === 0 ? "final" : "released")
})

/**
 * Proves anew that the shard is this worker's, where that is due: the process may have been frozen,
 * or cut off from NATS, and another worker may send. An outcome without results that follows the
 * last one is the proof; after a conflict nothing more is sent.
 */
const prove = Effect.fnUntraced(function* (run: ShardRun) {
  while (run.failure === undefined && !(yield* isProven(run))) yield* Effect.exit(flush(run))
})

/**
 * Takes a permit for one push; fails when it may not be sent: with "stop" because the shard is left
 * to others or to a later run, with "cancelled" because the broadcast was cancelled, with "late"
 * because its turn is lost.
 */
const takePermit = Effect.fnUntraced(function* (run: ShardRun, turn: Turn) {
  const { draining, orderOf, permits } = run.tools
  yield* permits.take(run.job.broadcast)
  yield* prove(run)
  const order = run.failure !== undefined || draining() ? "hold" : orderOf(run.job)
  if (order === "send" && (yield* turn.take)) run.permits += 1
  else {
    yield* permits.release(run.job.broadcast)
    const why = { send: "late", cancel: "cancelled", hold: "stop", old: "stop" } as const
    return yield* Effect.fail(why[order])
  }
})

/** Returns the result of one push; undefined: it is left to the next delivery. */
const resultOfPush = Effect.fnUntraced(function* (
  run: ShardRun,
  target: Target,
  i: number,
  turn: Turn
) {
  const { job, tools } = run
  const now = yield* Clock.currentTimeMillis
  const unsent = unsentResult.bind(undefined, target, 0)
  const order = tools.orderOf(job)
  if (order === "cancel") return { target, result: unsent(now, cancelledEnd), permit: false }
  if (order !== "send") return undefined
  if (now >= job.expiresAt)
    return { target, result: unsent(now, { fate: "expired", reason: "expired" }), permit: false }
  const ready = Effect.andThen(takePermit(run, turn), run.check(target))
  const attempted = yield* Effect.result(
    tools.send({ target, ref: job, bodyOf: () => run.bodies.take(i) }, ready)
  )
  if (attempted._tag === "Failure") {
    const reason = attempted.failure
    if (reason === "stop") return undefined
    if (reason === "late") return yield* Effect.fail(reason)
    const at = yield* Clock.currentTimeMillis
    return reason === "cancelled"
      ? { target, result: unsent(at, cancelledEnd), permit: false }
      : { target, result: unsent(at, { fate: "gone", reason }), permit: true }
  }
  const attempt = attempted.success
  if (attempt.decidedBy === "process") turn.giveBack()
  const { locale } = run.variantOf(target)
  const result = yield* tools.record.resultOf({ target, ref: job, attempt, number: 1, locale })
  return { target, result, permit: true }
})

const push = Effect.fnUntraced(function* (run: ShardRun, target: Target, i: number) {
  const { job, tools } = run
  yield* run.begin(i)
  const isLeft = run.failure !== undefined || (yield* monotonicMillis) > run.leaveAt
  const recorded = isLeft
    ? undefined
    : yield* tools.turns.inTurn(job, false, (turn) => resultOfPush(run, target, i, turn))
  if (recorded === undefined) {
    run.left += 1
    return
  }
  run.results.push(recorded)
  if (run.results.length >= resultsMax) yield* flush(run)
  else yield* run.hasResults.open
})

/**
 * Sends and records the pushes of a shard that no earlier delivery recorded; none unless the shard
 * is claimed. Returns how many are left, and whether writes that follow from outcomes are
 * postponed.
 */
export const runShard = Effect.fnUntraced(function* (
  tools: ShardTools,
  job: ShardJob,
  past: Past | Claimed,
  { check, targets }: Audience,
  { variantOf }: Payload
) {
  if (!isClaimed(past)) return { left: 0, isPostponed: past.isPostponed }
  const share = shareOf(job.rate, tools.concurrency)
  const todo = targets.filter(({ id, user }) => !past.results.has(pushKey(user, id)))
  const run: ShardRun = {
    tools,
    job,
    subject: outcomeSubject.shard(job, job.shard),
    check,
    bodies: new Bodies(todo, (target) => variantOf(target).padded, tools.publicKeys),
    variantOf,
    begin: tools.batches(job.broadcast, todo.length),
    leaveAt: (yield* monotonicMillis) + share.millis,
    flushing: Semaphore.makeUnsafe(1),
    results: [],
    hasResults: Latch.makeUnsafe(),
    seq: past.seq,
    provenAt: past.claimedAt,
    permits: 0,
    left: 0,
    isPostponed: past.isPostponed,
    failure: undefined
  }
  const flusher = yield* Effect.forkChild(flushWhenDue(run))
  const options = { concurrency: share.concurrency, discard: true } as const
  yield* Effect.forEach(todo, (target, i) => push(run, target, i), options).pipe(
    Effect.andThen(Fiber.interrupt(flusher)),
    Effect.andThen(flushRest(run)),
    Effect.ensuring(Fiber.interrupt(flusher)),
    Effect.ensuring(Effect.suspend(() => release(run, run.permits)))
  )
  return { left: run.left, isPostponed: run.isPostponed }
})
