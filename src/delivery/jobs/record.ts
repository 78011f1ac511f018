// Writes down what became of pushes, in the order that a crash anywhere forgives: dead letters, then the outcome, then removals, strikes and
// retries. A removal before it would take the push out of its audience: after a crash nobody would know of it, and it would have no fate.
import { Clock, Effect, Schedule } from "effect"
import { Settings } from "#config"
import {
  attemptsMax,
  type BroadcastRef,
  type RetryJob,
  retryDelayMillis,
  throttledBaseMillis
} from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, leave } from "#nats/stream/consumer.ts"
import { EventLog, freshId } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, originToken, type UserToken } from "#streams/tokens.ts"
import { makePushMetrics } from "#telemetry/metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type Attempted, originOf, type Target } from "../push/send.ts"
import type { Held } from "../push-service/push-service.ts"
import { Strikes } from "./strikes.ts"

/** Gone, but not by the push service's word: its user removed the subscription or left the channel. */
export const leftReason = "left"

/** A result and what it was for. */
export interface Recorded {
  readonly target: Target
  readonly result: PushResult
}

/** How long a write that follows from an outcome is tried again; whoever is given the job next begins with it. */
const patienceMillis = 120_000
const again = Schedule.spaced("500 millis")

const hostOf = (target: Target): string => URL.parse(originOf(target))?.hostname ?? ""

/** Goes on while NATS is away or full, for a while. */
export const patiently = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Clock.currentTimeMillis, (startedAt) =>
    Effect.retry(effect, {
      schedule: again,
      while: ({ _tag }) =>
        Effect.map(
          Clock.currentTimeMillis,
          (now) => _tag === "NatsUnavailable" && now - startedAt < patienceMillis
        )
    })
  )

const waits = makeRateLimitedLog("outcomes cannot be written: pushes wait")

/** What was sent must be written down, however long NATS is away or full: given up, it would be sent again, and that again. */
export const untilWritten = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E | NatsUnavailable, R>
) =>
  effect.pipe(
    Effect.tapError((error) =>
      error instanceof NatsUnavailable ? waits({ reason: String(error.cause) }) : Effect.void
    ),
    Effect.retry({ schedule: again, while: ({ _tag }) => _tag === "NatsUnavailable" })
  )

/** A push that has to wait through no fault of its own: spread over a tenth of the wait, so that not all come back at once. */
const heldOf = (
  base: Omit<PushResult, "fate" | "reason">,
  ref: BroadcastRef,
  { reason, until }: Held,
  random: number
): PushResult => {
  const waitMillis = Math.max(1, until - base.at)
  const nextAt = base.at + Math.round(waitMillis * (1 + random / 10))
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

/** The fate of a push after its `attempt`-th try (from 1). `random` in [0, 1) spreads the next one. */
export const resultOf = (
  target: Target,
  ref: BroadcastRef,
  attempted: Attempted,
  attempt: number,
  at: number,
  baseMillis: number,
  random: number
): PushResult => {
  const { class: outcome, millis, status } = attempted
  const base = {
    user: target.user,
    subscription: target.id,
    ...(status === undefined ? {} : { status }),
    attempt,
    millis,
    at
  }
  if (outcome === "held") return heldOf({ ...base, attempt: attempt - 1 }, ref, attempted, random)
  if (outcome === "accepted") return { ...base, fate: "delivered", reason: attempted.reason }
  if (outcome === "gone" || outcome === "dead")
    return { ...base, fate: outcome, reason: attempted.reason }
  if (attempt >= attemptsMax)
    return { ...base, fate: "dead", reason: `attempts-used-up:${attempted.reason}` }
  const { reason, retryAfterMillis } = attempted
  // One who throttles and says for how long is taken at its word, from the usual delay up.
  const firstMillis =
    reason === "throttled" && retryAfterMillis === undefined
      ? throttledBaseMillis(baseMillis)
      : baseMillis
  const nextAt = at + retryDelayMillis(attempt, firstMillis, random, retryAfterMillis)
  if (nextAt >= ref.expiresAt)
    return { ...base, fate: "expired", reason: `expired:${attempted.reason}` }
  return { ...base, fate: "retrying", reason: attempted.reason, nextAt }
}

export const makeRecord = Effect.gen(function* () {
  const log = yield* EventLog
  const { retryBaseMillis } = yield* Settings
  const metrics = yield* makePushMetrics
  const strikes = yield* Strikes

  const remove = (ref: BroadcastRef, { result, target }: Recorded) =>
    log.append("log", {
      subject: subjects.subscription(target.user),
      type: "subscription.gone/1",
      body: {
        id: target.id,
        generation: target.stored.seq,
        broadcast: ref.broadcast,
        status: result.status ?? 0,
        cause: result.reason,
        at: result.at
      },
      messageId: `gone.${target.user}.${target.id}.${target.stored.seq}`
    })

  const bury = (ref: BroadcastRef, { result, target }: Recorded) =>
    log.once("work", {
      subject: subjects.deadLetter(
        ref.channel as ChannelToken,
        ref.broadcast,
        target.user,
        target.id
      ),
      type: "dead/1",
      body: {
        ...ref,
        user: target.user,
        subscription: target.id,
        generation: target.stored.seq,
        reason: result.reason,
        ...(result.status === undefined ? {} : { status: result.status }),
        attempts: result.attempt,
        at: result.at
      }
    })

  const retry = (ref: BroadcastRef, { result, target }: Recorded) => {
    const body: RetryJob = {
      ...ref,
      user: target.user,
      subscription: target.id,
      generation: target.stored.seq,
      firstNextAt: result.nextAt ?? result.at,
      attempts: result.attempt,
      reason: result.reason
    }
    const subject = subjects.retry(
      originToken(new URL(originOf(target)).hostname),
      ref.broadcast,
      target.user,
      target.id
    )
    return log.once("work", { subject, type: "retry/1", body })
  }

  const forEach = <E, R>(
    list: ReadonlyArray<Recorded>,
    fate: PushResult["fate"],
    run: (each: Recorded) => Effect.Effect<unknown, E, R>
  ) =>
    Effect.forEach(
      list.filter(({ result }) => result.fate === fate),
      run,
      { concurrency: 32, discard: true }
    )

  /** Subscriptions that the push service calls dead, and the jobs of pushes to try again. */
  const ensured = Effect.fnUntraced(function* (ref: BroadcastRef, list: ReadonlyArray<Recorded>) {
    yield* forEach(list, "gone", (each) =>
      each.result.reason === leftReason ? Effect.void : remove(ref, each)
    )
    yield* forEach(list, "retrying", (each) => retry(ref, each))
  })

  return {
    resultOf: (
      target: Target,
      ref: BroadcastRef,
      attempted: Attempted,
      attempt: number,
      at: number,
      random: number
    ) => {
      // Without an answer and without a wait, nothing was sent.
      if (attempted.status !== undefined || attempted.millis > 0) metrics.attempted(hostOf(target))
      return resultOf(target, ref, attempted, attempt, at, retryBaseMillis, random)
    },

    /** Counts what an outcome has just recorded. */
    counted: (ref: BroadcastRef, list: ReadonlyArray<Recorded>): void => {
      for (const { result, target } of list)
        metrics.recorded(hostOf(target), result, ref.acceptedAt)
    },

    /** What must be written before the outcome: the letter of a push given up. */
    before: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      forEach(list, "dead", (each) => bury(ref, each)).pipe(untilWritten),

    /** What must be written after it. */
    after: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      Effect.andThen(ensured(ref, list), strikes.weigh(ref, list)),

    /** The part of `after` that must not be lost: whoever finds an outcome writes it again. Twice changes nothing. */
    ensured,

    /** Appends an outcome, however long that takes, behind the one at sequence `expect` (0: the first). A conflict means that another worker is on it. */
    outcome: Effect.fnUntraced(function* (
      subject: string,
      expect: number,
      body: {
        readonly broadcast: number
        readonly pushes: number
        readonly results: ReadonlyArray<PushResult>
        readonly final: boolean
      }
    ) {
      const at = yield* Clock.currentTimeMillis
      const id = yield* freshId
      return (yield* log
        .append("work", { subject, type: "outcome/1", body: { ...body, at }, expect, id })
        .pipe(untilWritten)).seq
    })
  }
})

/** Somebody else has recorded in our place: the message is theirs, and answering it would be a lie. */
export const conflictLeaves = <E, R>(
  effect: Effect.Effect<Ack, E, R>
): Effect.Effect<Ack, Exclude<E, AppendConflict>, R> =>
  Effect.catchIf(
    effect,
    (error): error is E & AppendConflict => error instanceof AppendConflict,
    () => Effect.succeed(leave)
  ) as Effect.Effect<Ack, Exclude<E, AppendConflict>, R>

export const outcomeSubject = {
  shard: (ref: BroadcastRef, shard: string) =>
    subjects.shardOutcome(ref.channel as ChannelToken, ref.broadcast, shard),
  push: (ref: BroadcastRef, user: string, subscription: string) =>
    subjects.pushOutcome(
      ref.channel as ChannelToken,
      ref.broadcast,
      user as UserToken,
      subscription
    )
}
