// Strikes: ended pushes as evidence against single subscriptions, and their suspension. Evidence
// counts only while this process reaches other subscriptions, and not while most pushes to a push
// service end this way: then the push service, or our network, is at fault.
import { hostname } from "node:os"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeRoom } from "#basics/bounded.ts"
import { type Moment, moment, monotonicMillis, monotonicOf } from "#clock/clocks.ts"
import { Settings } from "#config"
import type { BroadcastRef } from "#domain/job.ts"
import { type PushResult, pushKey } from "#domain/outcome.ts"
import { isRequestRefusal, type StrikeReason } from "#domain/reason.ts"
import { strike, strikeOf } from "#domain/subscription/strike.ts"
import type { Append } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeStrikeMetrics } from "#telemetry/delivery-metrics.ts"
import { originOf, type Target } from "../attempt.ts"
import { Majority } from "../push-service/mass-gone.ts"
import { Origins } from "../push-service/origins.ts"
import type { Recorded } from "./result.ts"
import { storeOrPostpone } from "./writes.ts"

/** For this long, a delivered push proves that our network works. */
const deliveredMillis = 10 * 60_000

type StrikeMessage = "subscription.struck" | "subscription.suspended" | "subscription.cleared"

/** Broadcasts whose pushes are compared at one push service; those begun first are dropped. */
const comparedMax = 32
/** Subscriptions refused in one broadcast that are remembered. */
const refusedMax = 100

/**
 * Counts results as evidence, and writes the strikes, suspensions and clearings that follow. May be
 * given a result twice. False: some are postponed.
 */
export const weigh = Effect.fnUntraced(function* (
  ref: BroadcastRef,
  list: ReadonlyArray<Recorded>
) {
  const evidence = yield* Evidence
  const now = yield* monotonicMillis
  // Count all before judging the first: their order must not decide.
  for (const each of list) evidence.count(ref, each, now)
  return yield* judgeAll(ref, list)
})

/**
 * Writes what an earlier delivery, which counted these results, may have postponed. False: some are
 * postponed still.
 */
export const weighAgain = (ref: BroadcastRef, list: ReadonlyArray<Recorded>) =>
  judgeAll(ref, list.filter(isNewest))

/** The first write that is postponed ends this: the next delivery of the job judges all again. */
const judgeAll = Effect.fnUntraced(function* (ref: BroadcastRef, list: ReadonlyArray<Recorded>) {
  for (const each of list) {
    const cause = strikeOf(each.result)
    if (cause !== undefined && !(yield* against(ref, each, cause))) return false
    if (each.result.fate === "delivered" && each.target.stored.strikes !== undefined) {
      const write = append(ref, each, "subscription.cleared", clearing(each))
      if (!(yield* storeOrPostpone("subscription.cleared", write))) return false
    }
  }
  return true
})

const against = Effect.fnUntraced(function* (
  ref: BroadcastRef,
  each: Recorded,
  cause: StrikeReason
) {
  const { result, target } = each
  if (target.stored.suspended !== undefined) return true
  const { metrics, proofOf } = yield* Evidence
  const proof = proofOf(ref, each, cause, yield* moment)
  if (proof === undefined) return true
  const { strikeIntervalMillis } = yield* Settings
  const intervalMillis = strikeIntervalMillis * (proof === "lasting" ? lastingIntervals : 1)
  const next = strike(target.stored.strikes, cause, result.at, intervalMillis)
  if (next === undefined) return true
  const body = bodyOf(ref, each, cause)
  const isSuspended = next === "suspend"
  const type = isSuspended ? "subscription.suspended" : "subscription.struck"
  const write = isSuspended
    ? append(ref, each, "subscription.suspended", body)
    : append(ref, each, "subscription.struck", { ...body, strike: next })
  const counted = Effect.map(write, ({ duplicate }) => {
    const count = metrics[isSuspended ? "suspended" : "struck"]
    if (!duplicate) count(new URL(originOf(target)).hostname, cause)
  })
  return yield* storeOrPostpone(type, counted)
})

const makeEvidence = Effect.gen(function* () {
  const origins = yield* Origins
  const metrics = yield* makeStrikeMetrics
  const endings = origins.table(() => new Endings())
  const endingsOf = (target: Target) => endings.of(originOf(target))
  const counted = new WeakSet<Recorded["result"]>()
  let deliveredAt = Number.NEGATIVE_INFINITY

  return {
    metrics,

    /** Counts an ended push, once. `now`: by the monotonic clock. */
    count: ({ broadcast }: BroadcastRef, { result, target }: Recorded, now: number): void => {
      if (result.fate === "retrying" || counted.has(result)) return
      counted.add(result)
      if (result.fate === "delivered") deliveredAt = now
      endingsOf(target).count(broadcast, result, now)
    },

    /** Returns how a result speaks against its subscription alone; undefined: it does not. */
    proofOf: (
      ref: BroadcastRef,
      { result, target }: Recorded,
      cause: StrikeReason,
      now: Moment
    ): Proof | undefined => {
      // The settings forbid the endpoint: that needs no proof.
      if (cause === "endpoint-not-allowed") return "unreachable"
      const those = endingsOf(target)
      if (those.mostStrike) return undefined
      const { monotonic } = now
      const proof = isRequestRefusal(cause)
        ? those.proofOf(ref.broadcast, result, monotonic)
        : "unreachable"
      if (proof === "compared" || proof === undefined) return proof
      // Without a response, our own network may be at fault, unless a push was delivered since.
      const isReached =
        deliveredAt >= monotonicOf(now, ref.acceptedAt) ||
        (result.status !== undefined && monotonic - deliveredAt < deliveredMillis)
      return isReached ? proof : undefined
    }
  }
})

/** Knowledge of this process: how pushes to each push service ended, and the last delivered one. */
export class Evidence extends Context.Service<Evidence, Effect.Success<typeof makeEvidence>>()(
  "bellcast/delivery/Evidence"
) {
  static readonly layer = Layer.effect(Evidence, makeEvidence)
}

/** How the pushes of one broadcast ended at one push service. */
interface Compared {
  accepted: number
  refused: number
  /** The names of the first refused subscriptions: see {@link pushKey}. */
  readonly refusedOnes: Set<string>
}

/**
 * How a result speaks against its subscription. "lasting": there is nothing to compare a refusal
 * with, so it counts only if it lasts for longer.
 */
type Proof = "compared" | "lasting" | "unreachable"

/** Strikes for which there is only a lasting refusal are so many times as far apart: a day. */
const lastingIntervals = 3

/** How the pushes of this process to one push service ended. */
export class Endings {
  readonly #most = new Majority()
  readonly #compared = new Map<number, Compared>()
  #acceptedAt = Number.NEGATIVE_INFINITY

  /** Whether most ended pushes are strikes. */
  get mostStrike(): boolean {
    return this.#most.holds
  }

  count(broadcast: number, result: PushResult, now: number): void {
    const cause = strikeOf(result)
    this.#most.add(1, cause === undefined ? 0 : 1, now)
    if (result.fate === "delivered") {
      this.#acceptedAt = now
      this.#of(broadcast).accepted += 1
    } else if (isRequestRefusal(cause)) {
      const compared = this.#of(broadcast)
      compared.refused += 1
      if (compared.refusedOnes.size < refusedMax)
        compared.refusedOnes.add(pushKey(result.user, result.subscription))
    }
  }

  /**
   * Returns how a refusal of a request speaks against its subscription; undefined: not at all.
   * `now`: by the monotonic clock, as in `count`.
   */
  proofOf(broadcast: number, result: PushResult, now: number): "compared" | "lasting" | undefined {
    const name = pushKey(result.user, result.subscription)
    if (this.#isRefusedAlone(broadcast, name, result, now)) return "compared"
    return result.reason !== "bad-ttl" && this.#isOnlyOne(name) ? "lasting" : undefined
  }

  /**
   * Whether most others got the same broadcast. Their pushes may end later than the refused one, so
   * earlier broadcasts that this subscription was refused count, too. A push of a broadcast to one
   * person has no others: it is compared with those of other broadcasts, but for its TTL, which is
   * that of the broadcast.
   */
  #isRefusedAlone(broadcast: number, name: string, { reason }: PushResult, now: number): boolean {
    const { accepted, refused } = this.#compared.get(broadcast) ?? { accepted: 0, refused: 0 }
    if (accepted > refused) return true
    for (const { accepted, refused, refusedOnes } of this.#compared.values())
      if (accepted > refused && refusedOnes.has(name)) return true
    const isOnlyPush = accepted === 0 && refused <= 1
    return isOnlyPush && reason !== "bad-ttl" && now - this.#acceptedAt < deliveredMillis
  }

  /**
   * Whether this push service, as far as this process knows, has this subscription alone. The first
   * broadcast says nothing: the first of many refusals looks the same.
   */
  #isOnlyOne(name: string): boolean {
    const all = [...this.#compared.values()]
    return (
      all.length > 1 &&
      all.every(
        ({ accepted, refusedOnes }) =>
          accepted === 0 && refusedOnes.size === 1 && refusedOnes.has(name)
      )
    )
  }

  #of(broadcast: number): Compared {
    const known = this.#compared.get(broadcast)
    if (known !== undefined) return known
    makeRoom(this.#compared, comparedMax)
    const made: Compared = { accepted: 0, refused: 0, refusedOnes: new Set() }
    this.#compared.set(broadcast, made)
    return made
  }
}

const worker = `${hostname()}:${process.pid}`

const append = <T extends StrikeMessage>(
  { broadcast }: BroadcastRef,
  { target }: Recorded,
  type: T,
  body: Append<T>["body"]
) =>
  Effect.flatMap(EventLog, (log) =>
    log.append("log", {
      subject: subjects.subscription(target.user),
      type,
      body,
      messageId: `${type}.${broadcast}.${target.user}.${target.id}.${target.stored.seq}`
    })
  )

/** False for a delivered push before the last strike: a late clearing must not undo later ones. */
const isNewest = ({ result, target }: Recorded): boolean =>
  result.fate !== "delivered" || result.at >= (target.stored.strikes?.lastAt ?? 0)

const clearing = ({ result, target }: Recorded) =>
  ({ id: target.id, generation: target.stored.seq, by: "push", at: result.at }) as const

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
