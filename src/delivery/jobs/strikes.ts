// Strikes: ended pushes as evidence against single subscriptions, and their suspension. Evidence
// counts only while this process reaches other subscriptions, and not while most pushes to a push
// service end this way: then the push service, or our network, is at fault.
import { hostname } from "node:os"
import { Context, Effect, Layer } from "effect"
import { makeLruCache } from "#basics/lru-cache.ts"
import { Settings } from "#config"
import type { BroadcastRef } from "#domain/job.ts"
import type { StrikeReason } from "#domain/reason.ts"
import { strike, strikeOf } from "#domain/subscription/strike.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeStrikeMetrics } from "#telemetry/delivery-metrics.ts"
import { originOf } from "../push/target.ts"
import { Guard } from "../push-service/guard.ts"
import type { Recorded } from "./result.ts"

/** For this long, a delivered push proves that our network works. */
const deliveredMillis = 10 * 60_000
const originsMax = 1_000

type StrikeMessage = "subscription.struck/1" | "subscription.suspended/1" | "subscription.cleared/1"

/** Knowledge of this process: a guard per push service, and its last delivered push. */
const makeEvidence = () => {
  const guards = makeLruCache<Guard>(originsMax)
  const counted = new WeakSet<Recorded["result"]>()
  let deliveredAt = Number.NEGATIVE_INFINITY

  return {
    /** Counts an ended push, once. */
    count: ({ result, target }: Recorded): void => {
      if (result.fate === "retrying" || counted.has(result)) return
      counted.add(result)
      if (result.fate === "delivered") deliveredAt = Math.max(deliveredAt, result.at)
      guards.of(originOf(target), () => new Guard()).note(strikeOf(result) !== undefined, result.at)
    },

    /** Whether a result speaks against its subscription alone. */
    isConclusive: (
      ref: BroadcastRef,
      { result, target }: Recorded,
      cause: StrikeReason
    ): boolean => {
      // The settings forbid the endpoint: that needs no proof.
      if (cause === "endpoint-not-allowed") return true
      if (guards.of(originOf(target), () => new Guard()).holding) return false
      // Without a response, our own network may be at fault, unless a push was delivered since.
      return (
        deliveredAt >= ref.acceptedAt ||
        (result.status !== undefined && result.at - deliveredAt < deliveredMillis)
      )
    }
  }
}

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

const makeStrikes = Effect.gen(function* () {
  const log = yield* EventLog
  const { strikeIntervalMillis } = yield* Settings
  const metrics = yield* makeStrikeMetrics
  const worker = `${hostname()}:${process.pid}`
  const evidence = makeEvidence()

  const against = Effect.fnUntraced(function* (
    ref: BroadcastRef,
    each: Recorded,
    cause: StrikeReason
  ) {
    const { result, target } = each
    if (target.stored.suspended !== undefined || !evidence.isConclusive(ref, each, cause)) return
    const next = strike(target.stored.strikes, cause, result.at, strikeIntervalMillis)
    if (next === undefined) return
    const status = result.status === undefined ? {} : { status: result.status }
    const of = { id: target.id, generation: target.stored.seq, broadcast: ref.broadcast }
    const body = { ...of, cause, ...status, worker, at: result.at }
    if (next === "suspend") yield* append(log, ref, each, "subscription.suspended/1", body)
    else yield* append(log, ref, each, "subscription.struck/1", { ...body, strike: next })
    metrics[next === "suspend" ? "suspended" : "struck"](new URL(originOf(target)).hostname, cause)
  })

  const cleared = (ref: BroadcastRef, each: Recorded) =>
    append(log, ref, each, "subscription.cleared/1", {
      id: each.target.id,
      generation: each.target.stored.seq,
      by: "push",
      at: each.result.at
    })

  const weigh = Effect.fnUntraced(function* (ref: BroadcastRef, list: ReadonlyArray<Recorded>) {
    // Count all before judging the first: their order must not decide.
    for (const each of list) evidence.count(each)
    for (const each of list) {
      const cause = strikeOf(each.result)
      if (cause !== undefined) yield* against(ref, each, cause)
      if (each.result.fate === "delivered" && each.target.stored.strikes !== undefined)
        yield* cleared(ref, each)
    }
  })

  return { weigh }
})

export class Strikes extends Context.Service<
  Strikes,
  {
    /**
     * Writes the strikes, suspensions and clearings that follow from results. May be given one
     * twice.
     */
    readonly weigh: (
      ref: BroadcastRef,
      list: ReadonlyArray<Recorded>
    ) => Effect.Effect<void, NatsUnavailable>
  }
>()("bellcast/delivery/Strikes") {
  static readonly layer = Layer.effect(Strikes, makeStrikes)
}
