// Writes that follow from a recorded outcome: removals, retries, and strikes (strikes.ts). One that
// cannot be stored is postponed: its job is not acknowledged, and its next delivery finds the
// outcome and makes the write. So a full stream holds neither permits nor memory, and a crash loses
// nothing.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "#clock/clocks.ts"
import type { BroadcastRef, RetryJob } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Ack, hindered } from "#nats/stream/consumer.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import { Space } from "#nats/watch/space.ts"
import { subjects } from "#streams/subjects.ts"
import { originToken, type UserToken } from "#streams/tokens.ts"
import { factPostponed, type PostponedType } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { originOf, removedData, type Target } from "../../attempt.ts"

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
export const makeStoreOrPostpone = Effect.gen(function* () {
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
export const allStored = (writes: ReadonlyArray<Effect.Effect<boolean>>): Effect.Effect<boolean> =>
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
export const withFate = (list: ReadonlyArray<Recorded>, fate: PushResult["fate"]) =>
  list.filter(({ result }) => result.fate === fate)

/** Each write stands alone: a LOG without room must not keep retries out of WORK. */
export const removalsAndRetries = (
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
