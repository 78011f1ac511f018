// Records outcomes in an order that survives a crash at any point: dead letters, then the outcome,
// then removals, strikes and retries. A removal before the outcome would take the push out of its
// audience: after a crash the push would never get a fate.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { States } from "#broadcasts/states.ts"
import { Group } from "#children/group.ts"
import { FairSemaphore } from "#clock/fair-semaphore.ts"
import { Settings } from "#config"
import type { BroadcastRef, RetryJob } from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import { freshId } from "#nats/stream/append.ts"
import { HandlerProgress } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, originToken, type UserToken } from "#streams/tokens.ts"
import { makePushMetrics } from "#telemetry/delivery-metrics.ts"
import { originOf } from "../attempt.ts"
import { type Attempted, cancelledEnd, hostOf, type Recorded, resultOf } from "./result.ts"
import { weigh, weighAgain } from "./strikes.ts"
import { storeOrPostpone, untilWritten } from "./writes.ts"

/** Writes at the same time. */
const writesAtOnce = 32

/**
 * Stores results: dead letters, then the outcome, by `append`, then removals, strikes and retries,
 * unless `follows` is false. After a failure it writes nothing more. Returns whether all is stored;
 * false: removals, strikes or retries are postponed, for the next delivery of the job.
 */
export const writeInOrder = Effect.fnUntraced(function* <E, R>(
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>,
  append: Effect.Effect<void, E, R>,
  follows = true
) {
  yield* writeDeadLetters(ref, list)
  yield* append
  yield* countRecorded(ref, list)
  return follows ? yield* follow(ref, list, weigh(ref, list)) : true
})

/**
 * Writes what an earlier delivery, whose outcome this one finds, may have postponed. A second write
 * changes nothing. False: some are postponed still.
 */
export const writeFollowUpsAgain = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
  follow(ref, list, weighAgain(ref, list))

const writeDeadLetters = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
  Effect.flatMap(EventLog, (log) =>
    Effect.forEach(
      withFate(list, "dead"),
      ({ result, target }) => log.once("work", deadLetter(ref, result, target.stored.seq)),
      { concurrency: writesAtOnce, discard: true }
    )
  ).pipe(untilWritten)

const countRecorded = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
  Effect.map(PushMetrics, (metrics) => {
    for (const { result, target } of list) metrics.recorded(hostOf(target), result, ref.acceptedAt)
  })

/**
 * Writes removals, retry jobs and strikes. Each write stands alone: a LOG without room must not
 * keep retries out of WORK. Returns false if at least one is postponed.
 */
const follow = Effect.fnUntraced(function* <R>(
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>,
  strikes: Effect.Effect<boolean, never, R>
) {
  const log = yield* EventLog
  // For the reasons `left` and `moved` the subscription is removed already.
  const gone = withFate(list, "gone").filter(
    ({ result }) => result.reason !== "left" && result.reason !== "moved"
  )
  const writes = [
    strikes,
    ...gone.map((each) =>
      storeOrPostpone("subscription.gone", log.append("log", removal(ref, each)))
    ),
    ...withFate(list, "retrying").map((each) =>
      storeOrPostpone("retry", log.once("work", retryJob(ref, each)))
    )
  ]
  return !(yield* Effect.all(writes, { concurrency: writesAtOnce })).includes(false)
})

const withFate = (list: ReadonlyArray<Recorded>, fate: PushResult["fate"]) =>
  list.filter(({ result }) => result.fate === fate)

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
    type: "dead",
    body: {
      ...ref,
      ...{ user, subscription, generation, reason },
      ...(status === undefined ? {} : { status }),
      ...(service === undefined ? {} : { service }),
      attempts: attempt,
      at
    }
  }) as const

const removal = (ref: BroadcastRef, { result, target }: Recorded) =>
  ({
    subject: subjects.subscription(target.user),
    type: "subscription.gone",
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
    ...(result.locale === undefined ? {} : { locale: result.locale }),
    ...(firstRun === undefined ? {} : { firstRun })
  }
  const subject = subjects.retry(
    originToken(new URL(originOf(target)).host),
    ref.broadcast,
    target.user,
    target.id
  )
  return { subject, type: "retry", body } as const
}

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

/**
 * Appends an outcome behind the one at sequence `expect` (0: the first), however long NATS is away.
 * Fails with AppendConflict when another worker owns the job. Returns its sequence.
 */
export const writeOutcome = Effect.fnUntraced(function* (
  subject: string,
  expect: number,
  body: OutcomeBody
) {
  const log = yield* EventLog
  const at = yield* Clock.currentTimeMillis
  const id = yield* freshId
  const message = { subject, type: "outcome", body: { ...body, at }, expect, id } as const
  const { seq } = yield* log.append("work", message).pipe(untilWritten)
  // A shard of a broadcast with a rate may be in hand for minutes.
  if (body.results.length > 0) yield* (yield* HandlerProgress).goesOn
  return seq
})

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

/** Returns the result of an attempt made now, and counts the attempt. */
export const resultNow = Effect.fnUntraced(function* (
  made: Omit<Attempted, "at" | "baseMillis" | "random">
) {
  const { orderOf } = yield* States
  const { retryBaseMillis: baseMillis } = yield* Settings
  const at = yield* Clock.currentTimeMillis
  const random = yield* Random.next
  if (made.attempt.millis > 0) (yield* PushMetrics).attempted(hostOf(made.target), made.attempt)
  const result = resultOf({ ...made, at, baseMillis, random })
  if (result.fate !== "retrying" || orderOf(made.ref) !== "cancel") return result
  const { nextAt: _, until: __, ...last } = result
  return { ...last, ...cancelledEnd }
})

/** Counts attempts and outcomes. */
export class PushMetrics extends Context.Service<
  PushMetrics,
  Effect.Success<typeof makePushMetrics>
>()("bellcast/delivery/PushMetrics") {
  static readonly layer = Layer.effect(PushMetrics, makePushMetrics)
}

/**
 * For so long after an outcome of a job no other worker can have the job: a worker reports progress
 * at least every third of the ack wait, and JetStream waits all of it after a report.
 */
export const provenMillis = (2 / 3) * streams.work.consumers.deliver.ackWaitMillis

/** Permits are taken for other processes in so many pieces. */
const piecesMax = 32
/**
 * No push begins while a piece waits, and then no piece waits for as long. A push takes 15 s at
 * most (BELLCAST_PUSH_TIMEOUT_MILLIS and 5 s), so that of 768 permits a piece gets free in half a
 * second on average. With fewer it takes longer: the wait doubles with each piece that did not.
 */
const pieceMillisMin = 500
const pieceMillisMax = 4_000
/** If pushes wait, they begin for so long before the next piece: all take two seconds. */
const turnMillis = 50

/**
 * Keeps permits for other processes. In one piece, they would be free only once most pushes under
 * way have ended: no push would begin until then, for as long as a push may take. So they are taken
 * piece by piece, and pushes have their turn between. A piece that waits too long gives way, and so
 * does the one before it.
 */
export class OthersPermits {
  readonly #permits: FairSemaphore<number>
  readonly #pieceMax: number
  /** Each is of an owner of its own, which holds less than any broadcast, so that it is next. */
  readonly #pieces: Array<number> = []
  #pieceMillis = pieceMillisMin

  /** `whole`: the permits of all processes. */
  constructor(permits: FairSemaphore<number>, whole: number) {
    this.#permits = permits
    this.#pieceMax = Math.ceil(whole / piecesMax)
  }

  get #kept(): number {
    return this.#pieces.reduce((sum, each) => sum + each, 0)
  }

  /** Broadcasts begin at 1. */
  get #nextOwner(): number {
    return -this.#pieces.length
  }

  /** Ends once so many are kept. An interrupt, at the end of the process, leaves them taken. */
  keep(wanted: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#kept > wanted) return Effect.andThen(this.#give, this.keep(wanted))
      if (this.#kept < wanted) return Effect.andThen(this.#take(wanted), this.keep(wanted))
      this.#pieceMillis = pieceMillisMin
      return Effect.void
    })
  }

  readonly #give = Effect.suspend(() => {
    const permits = this.#pieces.pop() ?? 0
    // All that wait for permits would begin at once.
    return Effect.andThen(this.#permits.release(this.#nextOwner, permits), Effect.yieldNow)
  })

  #take(wanted: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const permits = Math.min(this.#pieceMax, wanted - this.#kept)
      const millis = this.#pieceMillis
      const taken = this.#permits.takeWithin(this.#nextOwner, permits, millis)
      return Effect.flatMap(taken, (isTaken) => {
        if (isTaken) {
          this.#pieces.push(permits)
          return this.#permits.isWaitedFor ? Effect.sleep(turnMillis) : Effect.void
        }
        this.#pieceMillis = Math.min(2 * millis, pieceMillisMax)
        // Pushes that do not end may have all the rest.
        return Effect.andThen(this.#give, Effect.sleep(millis))
      })
    })
  }
}

/**
 * Permits of this process. A push has one from before it is sent until its outcome is stored. So a
 * crash sends at most as many pushes twice as there are permits.
 */
export class Permits extends Context.Service<Permits, FairSemaphore<number>>()(
  "bellcast/delivery/Permits"
) {
  static readonly layer = Layer.effect(
    Permits,
    Effect.gen(function* () {
      const { unrecordedPushesMax: whole } = yield* Settings
      const { divide, part } = yield* Group
      const permits = new FairSemaphore<number>(whole)
      const others = new OthersPermits(permits, whole)
      // Taken, not resized: other processes begin once so many are free.
      yield* divide(Effect.suspend(() => others.keep(whole - part(whole))))
      return permits
    })
  )
}
