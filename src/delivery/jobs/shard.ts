// Shard job -> pushes -> outcomes. Reads the payload and who the shard goes to, claims the shard
// for this delivery of its job, with what earlier deliveries recorded, sends its pushes, and has
// their results recorded. A push is sent only with a permit, and only while a stored outcome proves
// that the shard is still this worker's.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { States } from "#broadcasts/states.ts"
import { Group } from "#children/group.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { Settings } from "#config"
import type { ShardJob } from "#domain/job.ts"
import type { Message } from "#domain/messages/table.ts"
import { pushKey } from "#domain/outcome.ts"
import type { Recipients } from "#domain/recipients.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Delivery, done, hindered, keep, later, never } from "#nats/stream/consumer.ts"
import type { Target } from "../attempt.ts"
import { Draining } from "../draining.ts"
import { Bodies, PublicKeys, type Sealed, sealedAtOnce } from "../push/encrypt.ts"
import { send } from "../push/send.ts"
import { shareOf } from "../rate/limit.ts"
import { inTurn, type Turn } from "../rate/turns.ts"
import { Admission } from "../recipients/admission.ts"
import { type Audience, Audiences } from "../recipients/audience.ts"
import { alongside, appendNext, endPaused, isPausedOrOld } from "./next-jobs.ts"
import { type Payload, Payloads } from "./payload.ts"
import { Permits, resultNow } from "./record.ts"
import { cancelledEnd, type UnsentEnd, unsentResult } from "./result.ts"
import {
  add,
  type Claimed,
  claimAgain,
  claimFirst,
  flushRest,
  flushSent,
  flushWhenDue,
  isClaimed,
  isProven,
  type OwnShard,
  ownShard,
  prove,
  readAndEnsure,
  release
} from "./shard-record.ts"
import { conflictLeaves, laterPostponed } from "./writes.ts"

/** A shard that a worker of an earlier run may be sending is looked at again after this time. */
const takenMillis = 500
/** A shard that is left with pushes that wait for their turns comes again after this time. */
const leftMillis = 1_000

type Job = Message<"shard">

/** Handles a shard job. */
export const handleShard = Effect.fnUntraced(function* (delivery: Delivery) {
  const { message: job } = delivery
  if (job.type !== "shard") return never(job.type === "malformed" ? job.reason : "not a shard job")
  const payload = yield* (yield* Payloads).of(job)
  if (payload === undefined) return never("the broadcast is not in the log")
  const { demandRead, orderOf } = yield* States
  yield* demandRead(job.broadcast)
  const isStored = isFirst(delivery, job) ? Effect.succeed(true) : ensured(job, payload.to)
  if (isPausedOrOld(orderOf(job))) return yield* endPaused(delivery, job, isStored)
  const { admitted } = yield* Admission
  const { endTurn, found } = yield* Effect.tapCause(
    admitted(job, payload.to),
    // A shard that cannot be read must not stop those behind it.
    () => appendNext(job, job.rate !== undefined)
  )
  return yield* Effect.gen(function* () {
    if (isPausedOrOld(orderOf(job))) return yield* endPaused(delivery, job, isStored)
    return yield* claimAndSend(delivery, job, payload, found)
  }).pipe(Effect.ensuring(endTurn))
})

/**
 * Keeps the job of a shard on which workers die: its pushes are sent once the defect is mended. A
 * worker may not even be able to read them. The shards behind it do not wait for that.
 */
export const keepShard = Effect.fnUntraced(function* ({ message: job }: Delivery) {
  if (job.type === "shard") yield* appendNext(job, job.rate !== undefined)
  return keep
})

/** Whether no earlier delivery and no job of an earlier run can have recorded anything. */
const isFirst = ({ deliveryCount }: Delivery, job: Job) =>
  deliveryCount === 1 && job.run === undefined

/** Stores what an earlier delivery may have left out. False: some of it is postponed. */
const ensured = Effect.fnUntraced(function* (job: Job, to: Recipients) {
  const { targets } = yield* (yield* Audiences).of(job, to)
  return !(yield* readAndEnsure(job, targets)).isPostponed
})

const claimAndSend = Effect.fnUntraced(function* (
  delivery: Delivery,
  job: Job,
  payload: Payload,
  audience: Audience
) {
  const claimed = isFirst(delivery, job) ? claimFirst(job, audience) : claimAgain(job, audience)
  // Both wait for the disk of nats-server. One after the other would delay the first push.
  const past = yield* alongside(claimed, appendNext(job, false))
  if (past === "taken") return hindered(takenMillis, "another worker has the shard")
  const next = appendNext(job, true)
  const { isPostponed, left } = isClaimed(past)
    ? yield* sendPushes(job, past, audience, payload, next)
    : { isPostponed: past.isPostponed, left: 0 }
  if (left > 0) return yield* leave(delivery, job, isPostponed)
  yield* next
  return isPostponed ? laterPostponed(delivery.deliveryCount) : done
}, conflictLeaves)

/** Ends a delivery that leaves pushes to the next one. */
const leave = Effect.fnUntraced(function* (delivery: Delivery, job: Job, isPostponed: boolean) {
  if (isPausedOrOld((yield* States).orderOf(job)))
    return yield* endPaused(delivery, job, Effect.succeed(!isPostponed))
  const { isDraining } = yield* Draining
  return later(job.rate === undefined || isDraining() ? 0 : leftMillis)
})

/** A claimed shard, and what its pushes need. */
interface Sending extends OwnShard {
  readonly check: Audience["check"]
  readonly bodies: Bodies
  readonly variantOf: Payload["variantOf"]
  /** Waits until the push with this index, counted within its shard, may begin. */
  readonly begin: (index: number) => Effect.Effect<void>
  /** When the rest of the shard is left to the next delivery, by the monotonic clock. */
  readonly leaveAt: number
}

/**
 * Sends and records the pushes of a claimed shard that no earlier delivery recorded. Runs
 * `allBegun` when the last of them has its turn. Returns how many are left, and whether writes that
 * follow from outcomes are postponed.
 */
const sendPushes = Effect.fnUntraced(function* <R>(
  job: ShardJob,
  past: Claimed,
  { check, targets }: Audience,
  { variantOf }: Payload,
  allBegun: Effect.Effect<void, NatsUnavailable, R>
) {
  const { unrecordedPushesMax } = yield* Settings
  const { part } = yield* Group
  const share = shareOf(job.rate, part(unrecordedPushesMax))
  const todo = targets.filter(({ id, user }) => !past.results.has(pushKey(user, id)))
  const shard: Sending = {
    ...ownShard(job, past),
    check,
    bodies: new Bodies(todo, (target) => variantOf(target).padded, yield* PublicKeys),
    variantOf,
    begin: (yield* PushBatches).add(job.broadcast, todo.length),
    leaveAt: (yield* monotonicMillis) + share.millis
  }
  const flusher = yield* Effect.forkChild(flushWhenDue(shard))
  const options = { concurrency: share.concurrency, discard: true } as const
  const atLast = allBegun === Effect.void ? Effect.void : Effect.ignore(allBegun)
  const begun = (i: number) => (i === todo.length - 1 ? atLast : Effect.void)
  yield* Effect.forEach(todo, (target, i) => push(shard, target, i, begun(i)), options).pipe(
    Effect.andThen(Fiber.interrupt(flusher)),
    Effect.andThen(flushRest(shard)),
    Effect.onError(() => flushSent(shard)),
    Effect.ensuring(Fiber.interrupt(flusher)),
    Effect.ensuring(Effect.suspend(() => release(shard, shard.permits)))
  )
  return { left: shard.left, isPostponed: shard.isPostponed }
})

const push = Effect.fnUntraced(function* <R>(
  shard: Sending,
  target: Target,
  i: number,
  begun: Effect.Effect<void, never, R>
) {
  yield* shard.begin(i)
  // A push whose turn is lost is sent later, with the same body.
  let taken: { readonly body: Sealed } | undefined
  const bodyOf = () => {
    taken ??= { body: shard.bodies.take(i) }
    return taken.body
  }
  const isLeft = shard.failure !== undefined || (yield* monotonicMillis) > shard.leaveAt
  const recorded = isLeft
    ? undefined
    : yield* inTurn(shard.job, false, (turn) =>
        alongside(resultOfPush(shard, target, bodyOf, turn), begun)
      )
  if (recorded === undefined) {
    shard.left += 1
    return
  }
  yield* add(shard, recorded)
})

/** Returns the result of one push; undefined: it is left to the next delivery. */
const resultOfPush = Effect.fnUntraced(function* (
  shard: Sending,
  target: Target,
  bodyOf: () => Sealed,
  turn: Turn
) {
  const { job } = shard
  const now = yield* Clock.currentTimeMillis
  const { locale } = shard.variantOf(target)
  const unsent = (at: number, end: UnsentEnd) => unsentResult({ ...target, locale }, 0, at, end)
  const order = (yield* States).orderOf(job)
  if (order === "cancel") return { target, result: unsent(now, cancelledEnd), permit: false }
  if (order !== "send") return undefined
  if (now >= job.expiresAt)
    return { target, result: unsent(now, { fate: "expired", reason: "expired" }), permit: false }
  if (target.stored.moved !== undefined)
    return { target, result: unsent(now, { fate: "gone", reason: "moved" }), permit: false }
  const ready = takePermit(shard, target, turn)
  const attempted = yield* Effect.result(
    send({ target, ref: job, bodyOf, waitMillisMax: turn.millisMax }, ready)
  )
  if (attempted._tag === "Failure") {
    const reason = attempted.failure
    if (reason === "withdrawn") yield* leaveWithdrawn(shard, turn)
    if (reason === "withdrawn" || reason === "stop") return undefined
    if (reason === "late") return yield* Effect.fail(reason)
    const at = yield* Clock.currentTimeMillis
    return reason === "cancelled"
      ? { target, result: unsent(at, cancelledEnd), permit: false }
      : { target, result: unsent(at, { fate: "gone", reason }), permit: true }
  }
  const attempt = attempted.success
  if (attempt.decidedBy === "process") turn.giveBack()
  const result = yield* resultNow({ target, ref: job, attempt, number: 1, locale })
  return { target, result, permit: true }
})

/** Gives back the permit of one push. After a failure all are free already. */
const releaseOne = (shard: OwnShard) => release(shard, Math.min(1, shard.permits))

/** Leaves a push that was not sent. Fails with "late" if only its turn is lost. */
const leaveWithdrawn = Effect.fnUntraced(function* (shard: OwnShard, turn: Turn) {
  yield* releaseOne(shard)
  if ((yield* States).orderOf(shard.job) === "send") return yield* Effect.fail("late" as const)
  turn.giveBack()
})

/**
 * Takes a permit for one push; fails when it may not be sent: with "stop" because the shard is left
 * to others or to a later run, with "cancelled" because the broadcast was cancelled, with "late"
 * because its turn is lost. It also fails when the check does, and then keeps the permit.
 */
const takePermit = Effect.fnUntraced(function* (shard: Sending, target: Target, turn: Turn) {
  const permits = yield* Permits
  const { broadcast } = shard.job
  yield* permits.take(broadcast)
  shard.permits += 1
  const checked = yield* checkProven(shard, target)
  const { isDraining } = yield* Draining
  const { orderOf } = yield* States
  const order = shard.failure !== undefined || isDraining() ? "wait" : orderOf(shard.job)
  if (order === "send" && (checked._tag === "Failure" || (yield* turn.take)))
    return yield* Effect.fromResult(checked)
  yield* releaseOne(shard)
  const why = { send: "late", cancel: "cancelled", wait: "stop", old: "stop" } as const
  return yield* Effect.fail(why[order])
})

/**
 * Checks that the user still has the subscription. The proof and the check may each wait for NATS,
 * so both are made anew until both are true.
 */
const checkProven = Effect.fnUntraced(function* (shard: Sending, target: Target) {
  while (true) {
    yield* prove(shard)
    const checked = yield* Effect.result(shard.check(target))
    if (shard.failure !== undefined || (yield* isProven(shard))) return checked
  }
})

/** Some pushes of one shard that begin together. */
interface Batch {
  readonly pushes: number
  readonly start: Latch.Latch
}

/**
 * Begins the pushes of all shards in small batches, one for each turn of the event loop: those of
 * one shard `sealedAtOnce` at a time, of several small ones as many together. All at once, the
 * first would leave the process after the last is encrypted: 60 microseconds each. The broadcasts
 * that wait take turns.
 */
export class PushBatches extends Context.Service<
  PushBatches,
  {
    /** Adds the pushes of a shard. Returns a function that waits until one of them may begin. */
    readonly add: (broadcast: number, pushes: number) => Sending["begin"]
  }
>()("bellcast/delivery/PushBatches") {
  static readonly layer = Layer.effect(
    PushBatches,
    Effect.gen(function* () {
      /** By broadcast. */
      const waiting = new Map<number, Array<Batch>>()
      const hasWaiting = Latch.makeUnsafe()
      const beginSome = Effect.suspend(() => {
        if (waiting.size === 0) return Effect.andThen(hasWaiting.close, hasWaiting.await)
        for (let left = sealedAtOnce; left > 0 && waiting.size > 0; ) {
          const batch = takeBatch(waiting)
          batch.start.openUnsafe()
          left -= batch.pushes
        }
        return nextTurn
      })
      yield* Effect.forkScoped(Effect.forever(beginSome))
      return {
        add: (broadcast, pushes) => {
          const batches = batchesOf(pushes)
          if (pushes > 0) waiting.set(broadcast, [...(waiting.get(broadcast) ?? []), ...batches])
          hasWaiting.openUnsafe()
          return (index) => batches[Math.floor(index / sealedAtOnce)]!.start.await
        }
      }
    })
  )
}

const batchesOf = (pushes: number): ReadonlyArray<Batch> =>
  Array.from({ length: Math.ceil(pushes / sealedAtOnce) }, (_, i) => ({
    pushes: Math.min(sealedAtOnce, pushes - i * sealedAtOnce),
    start: Latch.makeUnsafe()
  }))

/** Takes the batch of the broadcast whose turn it is, which is last then. */
const takeBatch = (waiting: Map<number, Array<Batch>>): Batch => {
  const [broadcast, batches] = waiting.entries().next().value!
  waiting.delete(broadcast)
  const batch = batches.shift()!
  if (batches.length > 0) waiting.set(broadcast, batches)
  return batch
}

/** Waits for one turn of the event loop, in which it serves its sockets. */
const nextTurn = Effect.callback<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})
