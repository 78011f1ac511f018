// One delivery of a shard job: sends its pushes and has their results recorded. A push has a permit
// from before it is sent until its outcome is stored. So a crash sends at most as many pushes twice
// as there are permits. A push is sent only while a stored outcome proves that the shard is still
// this worker's. The pushes of all shards begin in small batches, one for each turn of the event
// loop. All at once, the first would leave the process after the last is encrypted: 60 microseconds
// each. The broadcasts that wait take turns.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import { monotonicMillis } from "#clock/clocks.ts"
import type { ShardJob } from "#domain/job.ts"
import { pushKey } from "#domain/outcome.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { Target } from "../attempt.ts"
import { Bodies, type Sealed } from "../push/encrypt.ts"
import { shareOf } from "../rate/limit.ts"
import type { Turn } from "../rate/turns.ts"
import type { Audience } from "../recipients/audience.ts"
import { alongside } from "./next-jobs.ts"
import { cancelledEnd, outcomeSubject, unsentResult } from "./record.ts"
import {
  add,
  flushRest,
  flushWhenDue,
  isClaimed,
  isProven,
  prove,
  release
} from "./shard-record.ts"
import type { Begin, Claimed, Past, Payload, ShardRun, ShardTools } from "./tools.ts"

/** Waits for one turn of the event loop, in which it serves its sockets. */
const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

/** Some pushes of one shard that begin together. */
interface Batch {
  readonly pushes: number
  readonly start: Latch.Latch
}

/** Takes the batch of the broadcast whose turn it is, which is last then. */
const takeBatch = (waiting: Map<number, Array<Batch>>): Batch => {
  const [broadcast, batches] = waiting.entries().next().value!
  waiting.delete(broadcast)
  const batch = batches.shift()!
  if (batches.length > 0) waiting.set(broadcast, batches)
  return batch
}

/** The pushes of a shard begin `batchSize` at a time; of several small ones, as many together. */
export const makePushBatches = Effect.fnUntraced(function* (batchSize: number) {
  /** By broadcast. */
  const waiting = new Map<number, Array<Batch>>()
  const hasWaiting = Latch.makeUnsafe()
  const startSome = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.andThen(hasWaiting.close, hasWaiting.await)
    for (let left = batchSize; left > 0 && waiting.size > 0; ) {
      const batch = takeBatch(waiting)
      batch.start.openUnsafe()
      left -= batch.pushes
    }
    return nextTurn
  })
  yield* Effect.forkScoped(Effect.forever(startSome))
  return (broadcast: number, pushes: number): Begin => {
    const batches = Array.from(
      { length: Math.ceil(pushes / batchSize) },
      (_, i): Batch => ({
        pushes: Math.min(batchSize, pushes - i * batchSize),
        start: Latch.makeUnsafe()
      })
    )
    if (pushes > 0) waiting.set(broadcast, [...(waiting.get(broadcast) ?? []), ...batches])
    hasWaiting.openUnsafe()
    return (index) => batches[Math.floor(index / batchSize)]!.start.await
  }
})

/**
 * Checks that the user still has the subscription. The proof and the check may each wait for NATS,
 * so both are made anew until both hold.
 */
const checkProven = Effect.fnUntraced(function* (run: ShardRun, target: Target) {
  while (true) {
    yield* prove(run)
    const checked = yield* Effect.result(run.check(target))
    if (run.failure !== undefined || (yield* isProven(run))) return checked
  }
})

/**
 * Takes a permit for one push; fails when it may not be sent: with "stop" because the shard is left
 * to others or to a later run, with "cancelled" because the broadcast was cancelled, with "late"
 * because its turn is lost. It also fails when the check does, and then keeps the permit.
 */
const takePermit = Effect.fnUntraced(function* (run: ShardRun, target: Target, turn: Turn) {
  const { draining, orderOf, permits } = run.tools
  yield* permits.take(run.job.broadcast)
  const checked = yield* checkProven(run, target)
  const order = run.failure !== undefined || draining() ? "hold" : orderOf(run.job)
  if (order === "send" && (checked._tag === "Failure" || (yield* turn.take))) {
    run.permits += 1
    return yield* Effect.fromResult(checked)
  }
  yield* permits.release(run.job.broadcast)
  const why = { send: "late", cancel: "cancelled", hold: "stop", old: "stop" } as const
  return yield* Effect.fail(why[order])
})

/** Leaves a push that was not sent. Fails with "late" if only its turn is lost. */
const leaveHeld = Effect.fnUntraced(function* (run: ShardRun, turn: Turn) {
  // After a failure all permits are free already.
  yield* release(run, Math.min(1, run.permits))
  if (run.tools.orderOf(run.job) === "send") return yield* Effect.fail("late" as const)
  turn.giveBack()
})

/** Returns the result of one push; undefined: it is left to the next delivery. */
const resultOfPush = Effect.fnUntraced(function* (
  run: ShardRun,
  target: Target,
  bodyOf: () => Sealed,
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
  if (target.stored.moved !== undefined)
    return { target, result: unsent(now, { fate: "gone", reason: "moved" }), permit: false }
  const ready = takePermit(run, target, turn)
  const attempted = yield* Effect.result(
    tools.send({ target, ref: job, bodyOf, waitMillisMax: turn.millisMax }, ready)
  )
  if (attempted._tag === "Failure") {
    const reason = attempted.failure
    if (reason === "held") yield* leaveHeld(run, turn)
    if (reason === "held" || reason === "stop") return undefined
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

const push = Effect.fnUntraced(function* (
  run: ShardRun,
  target: Target,
  i: number,
  begun: Effect.Effect<void>
) {
  const { job, tools } = run
  yield* run.begin(i)
  // A push whose turn is lost is sent later, with the same body.
  let taken: { readonly body: Sealed } | undefined
  const bodyOf = () => {
    taken ??= { body: run.bodies.take(i) }
    return taken.body
  }
  const isLeft = run.failure !== undefined || (yield* monotonicMillis) > run.leaveAt
  const recorded = isLeft
    ? undefined
    : yield* tools.turns.inTurn(job, false, (turn) =>
        alongside(resultOfPush(run, target, bodyOf, turn), begun)
      )
  if (recorded === undefined) {
    run.left += 1
    return
  }
  yield* add(run, recorded)
})

/**
 * Sends and records the pushes of a shard that no earlier delivery recorded; none unless the shard
 * is claimed. Runs `allBegun` when the last of them has its turn. Returns how many are left, and
 * whether writes that follow from outcomes are postponed.
 */
export const runShard = Effect.fnUntraced(function* (
  tools: ShardTools,
  job: ShardJob,
  past: Past | Claimed,
  { check, targets }: Audience,
  { variantOf }: Payload,
  allBegun: Effect.Effect<void, NatsUnavailable>
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
  const atLast = allBegun === Effect.void ? Effect.void : Effect.ignore(allBegun)
  const begun = (i: number) => (i === todo.length - 1 ? atLast : Effect.void)
  yield* Effect.forEach(todo, (target, i) => push(run, target, i, begun(i)), options).pipe(
    Effect.andThen(Fiber.interrupt(flusher)),
    Effect.andThen(flushRest(run)),
    Effect.ensuring(Fiber.interrupt(flusher)),
    Effect.ensuring(Effect.suspend(() => release(run, run.permits)))
  )
  return { left: run.left, isPostponed: run.isPostponed }
})
