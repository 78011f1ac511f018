// Records the results of pushes, in an order that survives a crash at any point: dead letters, then
// the outcome, then removals, strikes and retries. A removal before the outcome would take the push
// out of its audience: after a crash the push would never get a fate.
import { Clock, Effect, Random } from "effect"
import { Settings } from "#config"
import type { BroadcastRef, RetryJob } from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import { freshId } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, originToken, type UserToken } from "#streams/tokens.ts"
import { makePushMetrics } from "#telemetry/delivery-metrics.ts"
import { originOf, type Target } from "../push/target.ts"
import { allStored, makeStoredOrOwed, type StoredOrOwed } from "./owed.ts"
import { untilWritten } from "./patience.ts"
import { type Attempted, type Recorded, resultOf } from "./result.ts"
import { Strikes } from "./strikes.ts"

const hostOf = (target: Target): string => URL.parse(originOf(target))?.hostname ?? ""

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

const deadLetter = (ref: BroadcastRef, { result, target }: Recorded) =>
  ({
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
  }) as const

const retryJob = (ref: BroadcastRef, { result, target }: Recorded) => {
  const body: RetryJob = {
    ...ref,
    user: target.user,
    subscription: target.id,
    generation: target.stored.seq,
    firstWaitMillis: (result.nextAt ?? result.at) - result.at,
    attempts: result.attempt,
    reason: result.reason
  }
  const subject = subjects.retry(
    originToken(new URL(originOf(target)).hostname),
    ref.broadcast,
    target.user,
    target.id
  )
  return { subject, type: "retry/1", body } as const
}

const withFate = (list: ReadonlyArray<Recorded>, fate: PushResult["fate"]) =>
  list.filter(({ result }) => result.fate === fate)

const concurrently = { concurrency: 32, discard: true } as const

/** The body of an outcome before it has its time. */
interface OutcomeBody {
  readonly broadcast: number
  readonly pushes: number
  readonly results: ReadonlyArray<PushResult>
  readonly final: boolean
}

const appendOutcome = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  subject: string,
  expect: number,
  body: OutcomeBody
) {
  const at = yield* Clock.currentTimeMillis
  const id = yield* freshId
  const message = { subject, type: "outcome/1", body: { ...body, at }, expect, id } as const
  return (yield* log.append("work", message).pipe(untilWritten)).seq
})

/** Each write stands alone: a LOG without room must not keep retries out of WORK. */
const writeRemovalsAndRetries = (
  log: EventLog["Service"],
  storedOrOwed: StoredOrOwed,
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>
) => {
  // A subscription with the reason "left" was removed by its user.
  const gone = withFate(list, "gone").filter(({ result }) => result.reason !== "left")
  const remove = (each: Recorded) =>
    storedOrOwed("subscription.gone/1", log.append("log", removal(ref, each)))
  const retry = (each: Recorded) => storedOrOwed("retry/1", log.once("work", retryJob(ref, each)))
  return allStored([...gone.map(remove), ...withFate(list, "retrying").map(retry)])
}

const bury = (log: EventLog["Service"], ref: BroadcastRef, dead: ReadonlyArray<Recorded>) =>
  Effect.forEach(dead, (each) => log.once("work", deadLetter(ref, each)), concurrently).pipe(
    untilWritten
  )

export const makeRecord = Effect.gen(function* () {
  const log = yield* EventLog
  const { retryBaseMillis } = yield* Settings
  const metrics = yield* makePushMetrics
  const strikes = yield* Strikes
  const storedOrOwed = yield* makeStoredOrOwed

  const follow = (
    ref: BroadcastRef,
    list: ReadonlyArray<Recorded>,
    weigh: Strikes["Service"]["weigh"]
  ) => {
    const others = writeRemovalsAndRetries(log, storedOrOwed, ref, list)
    return allStored([others, weigh(ref, list, storedOrOwed)])
  }

  /** Writes dead letters, before the outcome. */
  const before = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
    bury(log, ref, withFate(list, "dead"))

  return {
    before,

    /** Returns the result of an attempt made now, and counts the attempt. */
    resultOf: (made: Pick<Attempted, "target" | "ref" | "attempt" | "number">) =>
      Effect.zipWith(Clock.currentTimeMillis, Random.next, (at, random) => {
        if (made.attempt.millis > 0) metrics.attempted(hostOf(made.target))
        return resultOf({ ...made, at, baseMillis: retryBaseMillis, random })
      }),

    /** Counts the results of an outcome that is stored now. */
    counted: (ref: BroadcastRef, list: ReadonlyArray<Recorded>): void => {
      for (const { result, target } of list)
        metrics.recorded(hostOf(target), result, ref.acceptedAt)
    },

    /** Writes removals, retry jobs and strikes, after the outcome. False: some are owed. */
    after: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) => follow(ref, list, strikes.weigh),

    /**
     * Writes what an earlier delivery, whose outcome this one finds, may owe. A second write
     * changes nothing. False: some are owed still.
     */
    ensured: (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
      follow(ref, list, strikes.weighAgain),

    /**
     * Appends an outcome behind the one at sequence `expect` (0: the first), however long NATS is
     * away. Fails with AppendConflict when another worker owns the job. Returns its sequence.
     */
    outcome: (subject: string, expect: number, body: OutcomeBody) =>
      appendOutcome(log, subject, expect, body)
  }
})

export type Record = Effect.Success<typeof makeRecord>

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
