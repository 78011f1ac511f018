// Lets the pushes of a broadcast with a rate wait for their turns. They wait before they have a
// place in the queue of their push service or a permit, so that other broadcasts do not wait.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { States } from "#broadcasts/states.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Draining } from "../draining.ts"
import { intervalOf, Limit, type LimitedRef, reserve, unusedMillisMax } from "./limit.ts"

/** Turns that come within so long are given together. */
const stepMillisMin = 20
/** A pause, a cancellation, an end or a stop is obeyed within this time. */
const stepMillisMax = 200
/** Retries that wait for a turn take places, of which a push service has 64. */
const retriesWaitingMax = 16
/** Of one broadcast: as many as have their turn within this time. */
const retriesMillis = 250
/** A broadcast of which nothing waits is forgotten after this time. */
const idleMillisMax = 60_000
/**
 * Turns are reserved so long before the first of them comes. At random, so that processes seldom
 * reserve at the same time.
 */
const leadMillisMin = 50
const leadMillisMax = 150
const unavailableMillis = 500

/** The turn of one push. */
export interface Turn {
  /** Called right before the push is sent. False: the turn is lost, and the push waits again. */
  readonly take: Effect.Effect<boolean, never, States | Draining>
  /** Nothing was sent after all. */
  readonly giveBack: () => void
  /** The turn is lost if the push is sent later than so long after `take`. */
  readonly millisMax: number
}

const always: Turn = {
  take: Effect.succeed(true),
  giveBack: () => {},
  millisMax: Number.POSITIVE_INFINITY
}

const isLimited = (job: BroadcastRef): job is LimitedRef => job.rate !== undefined

/** The broadcasts with a rate of this process. */
export class Turns extends Context.Service<
  Turns,
  {
    /** By broadcast and run. */
    readonly limits: Map<string, Limit>
    /** Open when something changed that the next step must know. */
    readonly wake: Latch.Latch
  }
>()("bellcast/delivery/Turns") {
  /** Gives turns while it lives. */
  static readonly layer = Layer.effectDiscard(
    Effect.suspend(() => Effect.forkScoped(Effect.forever(steps)))
  ).pipe(
    Layer.provideMerge(Layer.sync(Turns, () => ({ limits: new Map(), wake: Latch.makeUnsafe() })))
  )
}

/**
 * Runs `attempt` when it is the turn of a push: at once if the broadcast has no rate, or if the
 * push is not to be sent. An attempt that fails with "late" is repeated at its next turn.
 */
export const inTurn = <A, E, R>(
  job: BroadcastRef,
  isRetry: boolean,
  attempt: (turn: Turn) => Effect.Effect<A, E, R>
) =>
  (isLimited(job) ? attemptInTurn(job, isRetry, attempt) : attempt(always)) as Effect.Effect<
    A,
    Exclude<E, "late">,
    R | Turns | States | Draining
  >

const attemptInTurn = Effect.fnUntraced(function* <A, E, R>(
  job: LimitedRef,
  isRetry: boolean,
  attempt: (turn: Turn) => Effect.Effect<A, E, R>
) {
  for (let isEarly = isRetry; ; isEarly = true) {
    // Each time: one that nothing used for a while is forgotten.
    const limit = yield* limitOf(job)
    if (yield* waits(job)) yield* wait(limit, isEarly)
    else limit.enter()
    const { leave, ...turn } = turnOf(limit)
    const ended = yield* Effect.result(attempt(turn)).pipe(Effect.ensuring(leave))
    if (ended._tag === "Success") return ended.success
    if (ended.failure !== "late") return yield* Effect.fail(ended.failure)
  }
})

/** Returns in how many milliseconds a retry is to come again; 0: it may wait for its turn. */
export const postponed = Effect.fnUntraced(function* (job: BroadcastRef) {
  if (!isLimited(job) || !(yield* waits(job))) return 0
  const { limits } = yield* Turns
  const limit = yield* limitOf(job)
  let all = 0
  for (const { earlyCount } of limits.values()) all += earlyCount
  const ownMax = Math.max(1, retriesMillis / intervalOf(job.rate))
  if (all < retriesWaitingMax && limit.earlyCount < ownMax) return 0
  const left = job.expiresAt - (yield* Clock.currentTimeMillis)
  return Math.min(Math.max(1, left), limit.postpone(yield* monotonicMillis))
})

/** Whether a job is to be sent, and still has time. The others need no turn to end. */
const waits = Effect.fnUntraced(function* (job: BroadcastRef) {
  const { isDraining } = yield* Draining
  const { orderOf } = yield* States
  const now = yield* Clock.currentTimeMillis
  return now < job.expiresAt && !isDraining() && orderOf(job) === "send"
})

const limitOf = Effect.fnUntraced(function* (job: LimitedRef) {
  const { limits } = yield* Turns
  const now = yield* monotonicMillis
  // From here to the end without another effect: two pushes must not make a limit each.
  const key = `${job.broadcast}.${job.run ?? 0}`
  const limit = limits.get(key) ?? new Limit(job)
  limit.usedAt = now
  limits.set(key, limit)
  return limit
})

const wait = (limit: Limit, isEarly: boolean) =>
  Effect.flatMap(Turns, ({ wake }) =>
    Effect.callback<void>((resume) => {
      if (limit.isIdle) wake.openUnsafe()
      const cancel = limit.wait(() => resume(Effect.void), isEarly)
      return Effect.sync(cancel)
    })
  )

/** The turn of a push that went on. */
const turnOf = (limit: Limit) => {
  let taken: number | undefined
  const take = Effect.zipWith(monotonicMillis, waits(limit.job), (now, isNeeded) => {
    taken = isNeeded ? limit.take(now) : undefined
    return !isNeeded || taken !== undefined
  })
  const giveBack = () => {
    if (taken !== undefined) limit.giveBack(taken)
    taken = undefined
  }
  const leave = Effect.sync(() => taken === undefined && limit.leave())
  return { take, giveBack, millisMax: unusedMillisMax(limit.job.rate), leave }
}

/** Gives the turns of all broadcasts, and waits until more may come. */
const steps = Effect.gen(function* () {
  const { limits, wake } = yield* Turns
  yield* wake.close
  const now = yield* monotonicMillis
  let next = Number.POSITIVE_INFINITY
  for (const [key, limit] of limits) {
    next = Math.min(next, yield* step(limit, now))
    if (now - limit.usedAt > idleMillisMax) limits.delete(key)
  }
  yield* Effect.sleep(stepMillisMin)
  const isAtRest = [...limits.values()].every(({ isIdle }) => isIdle)
  const left = Math.min(stepMillisMax, next - now) - stepMillisMin
  if (isAtRest) yield* wake.await
  else if (left > 0) yield* Effect.timeoutOption(wake.await, left)
})

/** Gives the turns of one broadcast that have come. Returns when to do so again. */
const step = Effect.fnUntraced(function* (limit: Limit, now: number) {
  if (limit.isIdle) return Number.POSITIVE_INFINITY
  limit.usedAt = now
  if (!(yield* waits(limit.job))) {
    limit.open()
    return now + stepMillisMax
  }
  const missing = limit.advance(now)
  if (missing <= 0 || limit.isReserving) return limit.next
  if (now < limit.reserveAt) return Math.min(limit.next, limit.reserveAt)
  limit.isReserving = true
  const { wake } = yield* Turns
  yield* Effect.forkChild(Effect.andThen(reserveFor(limit, missing), wake.open))
  return limit.next
})

/** Reserves the next turns of a broadcast, or learns when that is possible. */
const reserveFor = Effect.fnUntraced(function* (limit: Limit, count: number) {
  const { job } = limit
  yield* reserve(yield* Buckets, job, count, leadMillisMax).pipe(
    Effect.flatMap((reserved) =>
      Effect.map(lead, (millis) => {
        limit.add(reserved)
        limit.reserveAt = reserved.first + reserved.count * intervalOf(job.rate) - millis
      })
    ),
    // The next step reads how many turns the other process has reserved.
    Effect.catchTag("AppendConflict", () => Effect.void),
    // Also where the entry is no JSON: only a client of NATS writes such a one.
    Effect.catchCause((cause) =>
      Effect.andThen(
        failedReservations({ broadcast: job.broadcast, cause }),
        Effect.map(monotonicMillis, (now) => {
          limit.reserveAt = now + unavailableMillis
        })
      )
    ),
    Effect.ensuring(
      Effect.sync(() => {
        limit.isReserving = false
      })
    )
  )
})

const failedReservations = makeRateLimitedLog("turns cannot be reserved", Effect.logWarning)

const lead = Random.nextBetween(leadMillisMin, leadMillisMax)
