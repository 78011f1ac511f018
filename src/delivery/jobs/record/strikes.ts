// Strikes: ended pushes as evidence against single subscriptions, and their suspension. Evidence
// counts only while this process reaches other subscriptions, and not while most pushes to a push
// service end this way: then the push service, or our network, is at fault.
import { hostname } from "node:os"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import { Settings } from "#config"
import type { BroadcastRef } from "#domain/job.ts"
import type { StrikeReason } from "#domain/reason.ts"
import { strike, strikeOf } from "#domain/subscription/strike.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeStrikeMetrics } from "#telemetry/delivery-metrics.ts"
import { originOf, type Target } from "../../push/target.ts"
import { Majority } from "../../push-service/majority.ts"
import { Origins } from "../../push-service/origins.ts"
import type { Recorded, StoreOrPostpone } from "./follow-ups.ts"

/** For this long, a delivered push proves that our network works. */
const deliveredMillis = 10 * 60_000

type StrikeMessage = "subscription.struck/1" | "subscription.suspended/1" | "subscription.cleared/1"

/** Knowledge of this process: how most pushes to a push service end, and the last delivered one. */
const makeEvidence = (origins: Origins["Service"]) => {
  const majorities = origins.table(() => new Majority())
  /** Whether most ended pushes to the push service of a target are strikes. */
  const mostStrike = (target: Target) => majorities.of(originOf(target))
  const counted = new WeakSet<Recorded["result"]>()
  let deliveredAt = Number.NEGATIVE_INFINITY

  return {
    /** Counts an ended push, once. `now`: by the monotonic clock. */
    count: ({ result, target }: Recorded, now: number): void => {
      if (result.fate === "retrying" || counted.has(result)) return
      counted.add(result)
      if (result.fate === "delivered") deliveredAt = Math.max(deliveredAt, result.at)
      mostStrike(target).add(1, strikeOf(result) === undefined ? 0 : 1, now)
    },

    /** Whether a result speaks against its subscription alone. */
    isConclusive: (
      ref: BroadcastRef,
      { result, target }: Recorded,
      cause: StrikeReason
    ): boolean => {
      // The settings forbid the endpoint: that needs no proof.
      if (cause === "endpoint-not-allowed") return true
      if (mostStrike(target).holds) return false
      // Without a response, our own network may be at fault, unless a push was delivered since.
      return (
        deliveredAt >= ref.acceptedAt ||
        (result.status !== undefined && result.at - deliveredAt < deliveredMillis)
      )
    }
  }
}

const worker = `${hostname()}:${process.pid}`

const append = <T extends StrikeMessage>(
  log: EventLog["Service"],
  { broadcast }: BroadcastRef,
  { target }: Recorded,
  type: T,
  body: Append<T>["body"]
) =>
  log.append("log", {
    subject: subjects.subscription(target.user),
    type,
    body,
    messageId: `${type}.${broadcast}.${target.user}.${target.id}.${target.stored.seq}`
  })

/** False for a delivered push before the last strike: a late clearing must not undo later ones. */
const isNewest = ({ result, target }: Recorded): boolean =>
  result.fate !== "delivered" || result.at >= (target.stored.strikes?.lastAt ?? 0)

const cleared = (log: EventLog["Service"], ref: BroadcastRef, each: Recorded) =>
  append(log, ref, each, "subscription.cleared/1", {
    id: each.target.id,
    generation: each.target.stored.seq,
    by: "push",
    at: each.result.at
  })

/** The body of a strike or a suspension: the push that led to it. */
const bodyOf = (
  { broadcast }: BroadcastRef,
  { result, target }: Recorded,
  cause: StrikeReason
) => ({
  id: target.id,
  generation: target.stored.seq,
  broadcast,
  cause,
  ...(result.status === undefined ? {} : { status: result.status }),
  worker,
  at: result.at
})

interface Judge {
  readonly log: EventLog["Service"]
  readonly strikeIntervalMillis: number
  readonly metrics: Effect.Success<typeof makeStrikeMetrics>
  readonly evidence: ReturnType<typeof makeEvidence>
}

const against = Effect.fnUntraced(function* (
  { evidence, log, metrics, strikeIntervalMillis }: Judge,
  ref: BroadcastRef,
  each: Recorded,
  cause: StrikeReason,
  storeOrPostpone: StoreOrPostpone
) {
  const { result, target } = each
  if (target.stored.suspended !== undefined || !evidence.isConclusive(ref, each, cause)) return true
  const next = strike(target.stored.strikes, cause, result.at, strikeIntervalMillis)
  if (next === undefined) return true
  const body = bodyOf(ref, each, cause)
  const isSuspended = next === "suspend"
  const type = isSuspended ? "subscription.suspended/1" : "subscription.struck/1"
  const write = isSuspended
    ? append(log, ref, each, "subscription.suspended/1", body)
    : append(log, ref, each, "subscription.struck/1", { ...body, strike: next })
  const counted = Effect.map(write, ({ duplicate }) => {
    const count = metrics[isSuspended ? "suspended" : "struck"]
    if (!duplicate) count(new URL(originOf(target)).hostname, cause)
  })
  return yield* storeOrPostpone(type, counted)
})

/** The first write that is postponed ends this: the next delivery of the job judges all again. */
const judgeAll = Effect.fnUntraced(function* (
  judge: Judge,
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>,
  storeOrPostpone: StoreOrPostpone
) {
  for (const each of list) {
    const cause = strikeOf(each.result)
    if (cause !== undefined && !(yield* against(judge, ref, each, cause, storeOrPostpone)))
      return false
    if (each.result.fate === "delivered" && each.target.stored.strikes !== undefined) {
      const write = cleared(judge.log, ref, each)
      if (!(yield* storeOrPostpone("subscription.cleared/1", write))) return false
    }
  }
  return true
})

export const makeStrikes = Effect.gen(function* () {
  const { strikeIntervalMillis } = yield* Settings
  const evidence = makeEvidence(yield* Origins)
  const judge: Judge = {
    log: yield* EventLog,
    metrics: yield* makeStrikeMetrics,
    ...{ strikeIntervalMillis, evidence }
  }
  return {
    /**
     * Counts results as evidence, and writes the strikes, suspensions and clearings that follow.
     * May be given a result twice. False: some are postponed.
     */
    weigh: (ref: BroadcastRef, list: ReadonlyArray<Recorded>, storeOrPostpone: StoreOrPostpone) =>
      Effect.flatMap(monotonicMillis, (now) => {
        // Count all before judging the first: their order must not decide.
        for (const each of list) evidence.count(each, now)
        return judgeAll(judge, ref, list, storeOrPostpone)
      }),

    /**
     * Writes what an earlier delivery, which counted these results, may have postponed. False: some
     * are postponed still.
     */
    weighAgain: (
      ref: BroadcastRef,
      list: ReadonlyArray<Recorded>,
      storeOrPostpone: StoreOrPostpone
    ) => judgeAll(judge, ref, list.filter(isNewest), storeOrPostpone)
  }
})
