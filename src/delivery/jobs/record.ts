// Makes the outcome of each attempt: delivered, ended, or tried again and when. Records outcomes in
// an order that survives a crash at any point: dead letters, then the outcome, then removals,
// strikes and retries. A removal before the outcome would take the push out of its audience: after
// a crash the push would never get a fate.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "#clock/monotonic.ts"
import { Settings } from "#config"
import {
  attemptsMaxOf,
  type BroadcastRef,
  type RetryJob,
  retryDelayMillis,
  throttledBaseMillis
} from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import { otherPushService, pushServiceAt } from "#domain/subscription/push-services.ts"
import { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import { States } from "#nats/follower/states.ts"
import { freshId } from "#nats/stream/append.ts"
import { type Ack, HandlerProgress, hindered, leave } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, originToken, type UserToken } from "#streams/tokens.ts"
import { makePushMetrics } from "#telemetry/delivery-metrics.ts"
import { factPostponed, type PostponedType } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import {
  type Attempt,
  type Deferred,
  type Failed,
  originOf,
  removedData,
  type Target
} from "../attempt.ts"
import { makeStrikes } from "./strikes.ts"

/**
 * For so long after an outcome of a job no other worker can have the job: a worker reports progress
 * at least every third of the ack wait, and JetStream waits all of it after a report.
 */
export const provenMillis = (2 / 3) * streams.work.consumers.deliver.ackWaitMillis

/** An attempt, and what its outcome depends on. */
interface Attempted {
  readonly target: Target
  readonly ref: BroadcastRef
  readonly attempt: Attempt
  /** Number of the attempt, from 1. */
  readonly number: number
  /** When it was made. */
  readonly at: number
  /** The first delay before another attempt. */
  readonly baseMillis: number
  /** In [0, 1): spreads the next attempt. */
  readonly random: number
  /** The language of the variant that was sent. */
  readonly locale?: string | undefined
}

type Base = Omit<PushResult, "fate" | "reason" | "nextAt">

const hostOf = (target: Pick<Target, "stored">): string =>
  URL.parse(originOf(target))?.hostname ?? ""

/** The member `service` of the result of a push. */
const serviceMember = (target: Partial<Target>): Pick<PushResult, "service"> => {
  const { stored } = target
  const service = target.service ?? (stored ? pushServiceAt(hostOf({ stored })) : otherPushService)
  return service === otherPushService ? {} : { service }
}

/** The wait is spread by up to a tenth, so that deferred pushes do not all come back at once. */
const deferredResult = (
  base: Base,
  { reason, waitMillis }: Deferred,
  { random, ref }: Attempted
): PushResult => {
  const nextAt = base.at + Math.round(Math.max(1, waitMillis) * (1 + random / 10))
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

const failedResult = (
  base: Base,
  { reason, retryAfterMillis }: Failed,
  { baseMillis, random, ref }: Attempted
): PushResult => {
  if (base.attempt >= attemptsMaxOf(reason))
    return { ...base, fate: "dead", reason: `attempts-used-up:${reason}` }
  // Throttled without a Retry-After: wait longer than after other failures.
  const firstMillis =
    reason === "throttled" && retryAfterMillis === undefined
      ? throttledBaseMillis(baseMillis)
      : baseMillis
  const nextAt = base.at + retryDelayMillis(base.attempt, firstMillis, random, retryAfterMillis)
  if (nextAt >= ref.expiresAt) return { ...base, fate: "expired", reason: `expired:${reason}` }
  return { ...base, fate: "retrying", reason, nextAt }
}

/** Returns the outcome of a push after an attempt. */
export const resultOf = (attempted: Attempted): PushResult => {
  const { at, attempt, locale, number, target } = attempted
  const { millis, status } = attempt
  const counts = attempt.kind !== "deferred" && attempt.kind !== "expired"
  const base: Base = {
    user: target.user,
    subscription: target.id,
    ...(status === undefined ? {} : { status }),
    attempt: counts ? number : number - 1,
    millis,
    at,
    ...serviceMember(target),
    ...(locale === undefined ? {} : { locale })
  }
  if (attempt.kind === "deferred") return deferredResult(base, attempt, attempted)
  if (attempt.kind === "failed") return failedResult(base, attempt, attempted)
  return { ...base, fate: attempt.kind, reason: attempt.reason }
}

export type UnsentEnd =
  | { readonly fate: "gone"; readonly reason: "left" | "moved" }
  | { readonly fate: "dead"; readonly reason: "suspended" | "internal" }
  | { readonly fate: "expired"; readonly reason: "expired" }
  | { readonly fate: "cancelled"; readonly reason: "cancelled" }

/** The end of each push of a cancelled broadcast that has none yet. */
export const cancelledEnd: UnsentEnd = { fate: "cancelled", reason: "cancelled" }

/** The end of a push on which workers die. */
export const defectEnd: UnsentEnd = { fate: "dead", reason: "internal" }

/** Returns the outcome of a push that ends at `at` without another attempt. */
export const unsentResult = (
  target: Pick<Target, "id" | "user"> & Partial<Target>,
  attempt: number,
  at: number,
  end: UnsentEnd
): PushResult => {
  const { id: subscription, user } = target
  return { user, subscription, attempt, millis: 0, at, ...serviceMember(target), ...end }
}

/** The dead letter of a push. `generation`: the sequence of its subscription's put. */
export const deadLetter = (
  ref: BroadcastRef,
  { at, attempt, reason, service, status, subscription, user }: PushResult,
  generation: number
) =>
  ({
    subject: subjects.deadLetter(
      ref.channel as ChannelToken,
      ref.broadcast,
      user as UserToken,
      subscription
    ),
    type: "dead/1",
    body: {
      ...ref,
      ...{ user, subscription, generation, reason },
      ...(status === undefined ? {} : { status }),
      ...(service === undefined ? {} : { service }),
      attempts: attempt,
      at
    }
  }) as const

const lettersOf = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
  withFate(list, "dead").map(({ result, target }) => deadLetter(ref, result, target.stored.seq))

/** The body of an outcome before it has its time. */
interface OutcomeBody {
  readonly broadcast: number
  readonly pushes: number
  readonly results: ReadonlyArray<PushResult>
  readonly final: boolean
  readonly released?: true
  readonly withoutSubscription?: number
  readonly run?: number
}

/** Appends an outcome. A shard of a broadcast with a rate may be in hand for minutes. */
const append = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  message: Parameters<EventLog["Service"]["append"]>[1] & { readonly body: OutcomeBody }
) {
  const { seq } = yield* log.append("work", message).pipe(untilWritten)
  if (message.body.results.length > 0) yield* (yield* HandlerProgress).goesOn
  return seq
})

export const makeRecord = Effect.gen(function* () {
  const log = yield* EventLog
  const { orderOf } = yield* States
  const { retryBaseMillis } = yield* Settings
  const metrics = yield* makePushMetrics
  const strikes = yield* makeStrikes
  const storeOrPostpone = yield* makeStoreOrPostpone

  const follow = (
    ref: BroadcastRef,
    list: ReadonlyArray<Recorded>,
    weigh: typeof strikes.weigh
  ) => {
    const others = removalsAndRetries(log, storeOrPostpone, ref, list)
    return allStored([weigh(ref, list, storeOrPostpone), ...others])
  }

  return {
    /** Writes dead letters, before the outcome. */
    deadLetters: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      Effect.forEach(lettersOf(ref, list), (letter) => log.once("work", letter), {
        concurrency: 32,
        discard: true
      }).pipe(untilWritten),

    /** Returns the result of an attempt made now, and counts the attempt. */
    resultOf: (made: Pick<Attempted, "target" | "ref" | "attempt" | "number" | "locale">) =>
      Effect.zipWith(Clock.currentTimeMillis, Random.next, (at, random) => {
        if (made.attempt.millis > 0) metrics.attempted(hostOf(made.target), made.attempt)
        const result = resultOf({ ...made, at, baseMillis: retryBaseMillis, random })
        if (result.fate !== "retrying" || orderOf(made.ref) !== "cancel") return result
        const { nextAt: _, ...last } = result
        return { ...last, ...cancelledEnd }
      }),

    /** Counts the results of an outcome that is stored now. */
    counted: (ref: BroadcastRef, list: ReadonlyArray<Recorded>): void => {
      for (const { result, target } of list)
        metrics.recorded(hostOf(target), result, ref.acceptedAt)
    },

    /** Writes removals, retry jobs and strikes, after the outcome. False: some are postponed. */
    followUps: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      follow(ref, list, strikes.weigh),

    /**
     * Writes what an earlier delivery, whose outcome this one finds, may have postponed. A second
     * write changes nothing. False: some are postponed still.
     */
    followUpsAgain: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      follow(ref, list, strikes.weighAgain),

    /**
     * Appends an outcome behind the one at sequence `expect` (0: the first), however long NATS is
     * away. Fails with AppendConflict when another worker owns the job. Returns its sequence.
     */
    outcome: Effect.fnUntraced(function* (subject: string, expect: number, body: OutcomeBody) {
      const at = yield* Clock.currentTimeMillis
      const id = yield* freshId
      const message = { subject, type: "outcome/1", body: { ...body, at }, expect, id } as const
      return yield* append(log, message)
    })
  }
})

export type Record = Effect.Success<typeof makeRecord>

export const outcomeSubject = {
  shard: (ref: BroadcastRef, shard: string) =>
    subjects.shardOutcome(ref.channel as ChannelToken, ref.broadcast, shard),
  retry: ({
    broadcast,
    channel,
    subscription,
    user
  }: Pick<RetryJob, "broadcast" | "channel" | "subscription" | "user">) =>
    subjects.pushOutcome(channel as ChannelToken, broadcast, user as UserToken, subscription)
}

// Writes that follow from a recorded outcome: removals, retries, and strikes (strikes.ts). One that
// cannot be stored is postponed: its job is not acknowledged, and its next delivery finds the
// outcome and makes the write. So a full stream holds neither permits nor memory, and a crash loses
// nothing.

/** A result and the subscription it is for. */
export interface Recorded {
  readonly target: Target
  readonly result: PushResult
  /** The run of the broadcast that first attempted the push. Absent: the one of the job. */
  readonly firstRun?: number
}

/** The results that earlier deliveries of a job recorded. */
export interface PastResults {
  /** By {@link pushKey}. */
  readonly results: ReadonlyMap<string, PushResult>
  /** The runs of the broadcast in which these were recorded, by the same keys. */
  readonly runs: ReadonlyMap<string, number>
}

/** A target in place of a subscription that was removed. */
const removedTarget = ({ subscription, user }: PushResult): Target => ({
  user: user as UserToken,
  id: subscription,
  stored: { seq: 0, lastModified: 0, data: removedData }
})

/** Returns the past results of which removals and retry jobs may be missing. */
export const unfinished = (
  past: PastResults,
  targets: ReadonlyArray<Target>
): ReadonlyArray<Recorded> => {
  const present = new Map(targets.map((target) => [pushKey(target.user, target.id), target]))
  return [...past.results].flatMap(([key, result]): ReadonlyArray<Recorded> => {
    const target = present.get(key)
    const firstRun = past.runs.get(key)!
    const isPresent = target !== undefined && target.stored.moved === undefined
    if (isPresent) return [{ target, result, firstRun }]
    // A removed subscription still needs a last outcome. Its retry job finds it removed and records
    // that.
    const removed = { target: removedTarget(result), result, firstRun }
    return result.fate === "retrying" ? [removed] : []
  })
}

/** Longer than the election of a leader takes: 5 to 7 s. */
const unavailableMillisMax = 10_000
const again = Schedule.spaced("500 millis")

const laterMillisMin = 1_000
/** With room again, everything that was postponed is stored within this time. */
export const postponedMillisMax = 60_000

/** 1 s after the first delivery, then doubled times up to 60 s. */
export const postponedMillis = (deliveryCount: number): number =>
  Math.min(postponedMillisMax, laterMillisMin * 2 ** Math.min(16, deliveryCount - 1))

/** A job with postponed writes is delivered again. */
export const laterPostponed = (deliveryCount: number): Ack =>
  hindered(postponedMillis(deliveryCount), "what follows from an outcome cannot be stored")

/** Makes a write; false: it is postponed. */
export type StoreOrPostpone = (
  type: PostponedType,
  write: Effect.Effect<unknown, NatsUnavailable>
) => Effect.Effect<boolean>

/** Without room a write is postponed at once; while NATS does not respond, after 10 s. */
const makeStoreOrPostpone = Effect.gen(function* () {
  const space = yield* Space
  const warn = makeRateLimitedLog(
    "removals, strikes or retries cannot be stored: they are stored when that is possible again"
  )
  const retried = (write: Effect.Effect<unknown, NatsUnavailable>) =>
    Effect.flatMap(monotonicMillis, (startedAt) =>
      Effect.retry(write, {
        schedule: again,
        while: ({ reason }) =>
          Effect.map(
            monotonicMillis,
            (now) => reason._tag !== "NoRoom" && now - startedAt < unavailableMillisMax
          )
      })
    )
  const postpone = Effect.fnUntraced(function* (
    type: PostponedType,
    { cause, reason }: NatsUnavailable
  ) {
    factPostponed(type)
    if (reason._tag === "NoRoom") yield* space.refused(reason.stream)
    yield* warn({ type, reason: String(cause) })
    return false
  })
  const storeOrPostpone: StoreOrPostpone = (type, write) =>
    retried(write).pipe(
      Effect.as(true),
      Effect.catch((error) => postpone(type, error))
    )
  return storeOrPostpone
})

/** Makes writes at the same time; false: at least one is postponed. */
const allStored = (writes: ReadonlyArray<Effect.Effect<boolean>>): Effect.Effect<boolean> =>
  Effect.map(Effect.all(writes, { concurrency: 32 }), (stored) => !stored.includes(false))

const removal = (ref: BroadcastRef, { result, target }: Recorded) =>
  ({
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
  }) as const

const retryJob = (ref: BroadcastRef, { firstRun = ref.run, result, target }: Recorded) => {
  const body: RetryJob = {
    ...ref,
    user: target.user,
    subscription: target.id,
    generation: target.stored.seq,
    firstWaitMillis: (result.nextAt ?? result.at) - result.at,
    attempts: result.attempt,
    reason: result.reason,
    ...(result.service === undefined ? {} : { service: result.service }),
    ...(firstRun === undefined ? {} : { firstRun })
  }
  const subject = subjects.retry(
    originToken(new URL(originOf(target)).host),
    ref.broadcast,
    target.user,
    target.id
  )
  return { subject, type: "retry/1", body } as const
}

/** The results of one fate. */
const withFate = (list: ReadonlyArray<Recorded>, fate: PushResult["fate"]) =>
  list.filter(({ result }) => result.fate === fate)

/** Each write stands alone: a LOG without room must not keep retries out of WORK. */
const removalsAndRetries = (
  log: EventLog["Service"],
  storeOrPostpone: StoreOrPostpone,
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>
): ReadonlyArray<Effect.Effect<boolean>> => {
  // For the reasons `left` and `moved` the subscription is removed already.
  const gone = withFate(list, "gone").filter(
    ({ result }) => result.reason !== "left" && result.reason !== "moved"
  )
  return [
    ...gone.map((each) =>
      storeOrPostpone("subscription.gone/1", log.append("log", removal(ref, each)))
    ),
    ...withFate(list, "retrying").map((each) =>
      storeOrPostpone("retry/1", log.once("work", retryJob(ref, each)))
    )
  ]
}

// Writes that a sent push must not lose: tried again for as long as NATS is away or full.

const writtenAgain = Schedule.spaced("500 millis")

const waits = makeRateLimitedLog("outcomes cannot be written: pushes wait")

/**
 * Retries without end while NATS is away or full. For outcomes of pushes that were sent: without
 * its outcome, a push would be sent again with each delivery of the job.
 */
export const untilWritten = <A, E extends { readonly _tag: string }, R>(
  effect: Effect.Effect<A, E | NatsUnavailable, R>
) =>
  effect.pipe(
    Effect.tapError((error) =>
      error instanceof NatsUnavailable ? waits({ reason: String(error.cause) }) : Effect.void
    ),
    Effect.retry({ schedule: writtenAgain, while: ({ _tag }) => _tag === "NatsUnavailable" })
  )

/** AppendConflict: another worker owns this job now. Do not ack the message. */
export const conflictLeaves = <E, R>(
  effect: Effect.Effect<Ack, E, R>
): Effect.Effect<Ack, Exclude<E, AppendConflict>, R> =>
  Effect.catchIf(
    effect,
    (error): error is E & AppendConflict => error instanceof AppendConflict,
    () => Effect.succeed(leave)
  ) as Effect.Effect<Ack, Exclude<E, AppendConflict>, R>
