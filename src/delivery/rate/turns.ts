// Lets the pushes of a broadcast with a rate wait for their turns. They wait before they have a
// place in the queue of their push service or a permit, so that other broadcasts do not wait.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import type { States } from "#broadcasts/states.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { intervalOf, Limit, type LimitedRef, reserve, unusedMillisMax } from "./limit.ts"

/** Turns that come within so long are given together. */
const stepMillisMin = 20
/** A pause, a cancellation, an end or a stop is obeyed within this time. */
const stepMillisMax = 200
/** Retries that wait for a turn hold places, of which a push service has 64. */
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
  readonly take: Effect.Effect<boolean>
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

interface Tools extends Pick<States["Service"], "orderOf"> {
  /** Whether the process is shutting down. */
  readonly draining: () => boolean
}

/** Whether a job is to be sent, and still has time. The others need no turn to end. */
const waits = ({ draining, orderOf }: Tools, job: BroadcastRef) =>
  Effect.map(
    Clock.currentTimeMillis,
    (now) => now < job.expiresAt && !draining() && orderOf(job) === "send"
  )

const lead = Random.nextBetween(leadMillisMin, leadMillisMax)

/** Reserves the next turns of a broadcast, or learns when that is possible. */
const reserveFor = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  limit: Limit,
  count: number
) {
  const { job } = limit
  yield* reserve(buckets, job, count, leadMillisMax).pipe(
    Effect.flatMap((reserved) =>
      Effect.map(lead, (millis) => {
        limit.add(reserved)
        limit.reserveAt = reserved.first + reserved.count * intervalOf(job.rate) - millis
      })
    ),
    // The next step reads how many turns the other process has reserved.
    Effect.catchTag("AppendConflict", () => Effect.void),
    Effect.catch(() =>
      Effect.map(monotonicMillis, (now) => {
        limit.reserveAt = now + unavailableMillis
      })
    )
  )
  limit.isReserving = false
})

interface State {
  readonly tools: Tools
  readonly buckets: Buckets["Service"]
  readonly scope: Scope.Scope
  /** By broadcast and run. */
  readonly limits: Map<string, Limit>
  /** Open when something changed that the next step must know. */
  readonly wake: Latch.Latch
}

const limitOf = ({ limits }: State, job: LimitedRef) =>
  Effect.map(monotonicMillis, (now) => {
    const key = `${job.broadcast}.${job.run ?? 0}`
    const limit = limits.get(key) ?? new Limit(job)
    limit.usedAt = now
    limits.set(key, limit)
    return limit
  })

/** Gives the turns of one broadcast that have come. Returns when to do so again. */
const step = Effect.fnUntraced(function* (state: State, limit: Limit, now: number) {
  const { buckets, scope, tools, wake } = state
  if (limit.isIdle) return Number.POSITIVE_INFINITY
  limit.usedAt = now
  if (!(yield* waits(tools, limit.job))) {
    limit.open()
    return now + stepMillisMax
  }
  const missing = limit.advance(now)
  if (missing <= 0 || limit.isReserving) return limit.next
  if (now < limit.reserveAt) return Math.min(limit.next, limit.reserveAt)
  limit.isReserving = true
  yield* Effect.forkIn(Effect.andThen(reserveFor(buckets, limit, missing), wake.open), scope)
  return limit.next
})

/** Gives the turns of all broadcasts, and waits until more may come. */
const steps = Effect.fnUntraced(function* (state: State) {
  const { limits, wake } = state
  yield* wake.close
  const now = yield* monotonicMillis
  let next = Number.POSITIVE_INFINITY
  for (const [key, limit] of limits) {
    next = Math.min(next, yield* step(state, limit, now))
    if (now - limit.usedAt > idleMillisMax) limits.delete(key)
  }
  yield* Effect.sleep(stepMillisMin)
  const isAtRest = [...limits.values()].every(({ isIdle }) => isIdle)
  const left = Math.min(stepMillisMax, next - now) - stepMillisMin
  if (isAtRest) yield* wake.await
  else if (left > 0) yield* Effect.timeoutOption(wake.await, left)
})

const wait = ({ wake }: State, limit: Limit, isEarly: boolean) =>
  Effect.callback<void>((resume) => {
    if (limit.isIdle) wake.openUnsafe()
    const cancel = limit.wait(() => resume(Effect.void), isEarly)
    return Effect.sync(cancel)
  })

/** The turn of a push that went on. */
const turnOf = (tools: Tools, limit: Limit) => {
  let taken: number | undefined
  const take = Effect.zipWith(monotonicMillis, waits(tools, limit.job), (now, isNeeded) => {
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

const runInTurn = Effect.fnUntraced(function* <A, E, R>(
  state: State,
  job: LimitedRef,
  isRetry: boolean,
  run: (turn: Turn) => Effect.Effect<A, E | "late", R>
) {
  const { tools } = state
  const limit = yield* limitOf(state, job)
  for (let isEarly = isRetry; ; isEarly = true) {
    if (yield* waits(tools, job)) yield* wait(state, limit, isEarly)
    else limit.enter()
    const { leave, ...turn } = turnOf(tools, limit)
    const ended = yield* Effect.result(run(turn)).pipe(Effect.ensuring(leave))
    if (ended._tag === "Success") return ended.success
    if (ended.failure !== "late") return yield* Effect.fail(ended.failure as E)
  }
})

/** Returns in how many milliseconds a retry is to come again; 0: it may wait for its turn. */
const postponed = Effect.fnUntraced(function* (state: State, job: BroadcastRef) {
  if (!isLimited(job) || !(yield* waits(state.tools, job))) return 0
  const limit = yield* limitOf(state, job)
  let all = 0
  for (const { earlyCount } of state.limits.values()) all += earlyCount
  const ownMax = Math.max(1, retriesMillis / intervalOf(job.rate))
  if (all < retriesWaitingMax && limit.earlyCount < ownMax) return 0
  const left = job.expiresAt - (yield* Clock.currentTimeMillis)
  return Math.min(Math.max(1, left), limit.postpone(yield* monotonicMillis))
})

/** Returns functions that let pushes of broadcasts with a rate wait. Others never wait. */
export const makeTurns = Effect.fnUntraced(function* (tools: Tools) {
  const state: State = {
    tools,
    buckets: yield* Buckets,
    scope: yield* Effect.scope,
    limits: new Map(),
    wake: Latch.makeUnsafe()
  }
  yield* Effect.forkScoped(Effect.forever(steps(state)))
  return {
    /**
     * Runs `run` when it is the turn of a push: at once if the broadcast has no rate, or if the
     * push is not to be sent. A run that fails with "late" is repeated at its next turn.
     */
    inTurn: <A, E, R>(
      job: BroadcastRef,
      isRetry: boolean,
      run: (turn: Turn) => Effect.Effect<A, E | "late", R>
    ) =>
      (isLimited(job) ? runInTurn(state, job, isRetry, run) : run(always)) as Effect.Effect<
        A,
        E,
        R
      >,
    postponed: (job: BroadcastRef) => postponed(state, job)
  }
})

export type Turns = Effect.Success<ReturnType<typeof makeTurns>>
