// Strikes: what ended pushes say against single subscriptions, and their suspension. Only a process that reaches others believes what it sees,
// and not where most pushes to one push service end so: that is the service's trouble, or ours.
import { hostname } from "node:os"
import { Context, Effect, Layer } from "effect"
import { Settings } from "#config"
import type { BroadcastRef } from "#domain/job.ts"
import { strike, strikeOf } from "#domain/strike.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Append, EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { makeStrikeMetrics } from "#telemetry/metrics.ts"
import { makeLruCache } from "../lru-cache.ts"
import { originOf } from "../push/send.ts"
import { type Guard, makeGuard } from "../push-service/guard.ts"
import type { Recorded } from "./record.ts"

/** Where a push service has answered, one that arrived somewhere shows for so long that it is not us. */
const reachedMillis = 10 * 60_000
const originsMax = 1_000

type StrikeMessage = "subscription.struck/1" | "subscription.suspended/1" | "subscription.cleared/1"

export class Strikes extends Context.Service<
  Strikes,
  {
    /** Writes down what these results, known now and perhaps given again after a failure, say for or against their subscriptions. */
    readonly weigh: (
      ref: BroadcastRef,
      list: ReadonlyArray<Recorded>
    ) => Effect.Effect<void, NatsUnavailable>
  }
>()("bellcast/delivery/Strikes") {
  static readonly layer = Layer.effect(
    Strikes,
    Effect.gen(function* () {
      const log = yield* EventLog
      const { strikeIntervalMillis } = yield* Settings
      const metrics = yield* makeStrikeMetrics
      const worker = `${hostname()}:${process.pid}`
      const guards = makeLruCache<Guard>(originsMax)
      const counted = new WeakSet<Recorded["result"]>()
      let reachedAt = Number.NEGATIVE_INFINITY

      const guardOf = (origin: string): Guard => guards.of(origin, makeGuard)

      const count = ({ result, target }: Recorded): void => {
        if (result.fate === "retrying" || counted.has(result)) return
        counted.add(result)
        if (result.fate === "delivered") reachedAt = Math.max(reachedAt, result.at)
        guardOf(originOf(target)).note(strikeOf(result) !== undefined, result.at)
      }

      const isBelieved = (
        ref: BroadcastRef,
        { result, target }: Recorded,
        cause: string
      ): boolean => {
        // What the settings say needs no proof.
        if (cause === "endpoint-not-allowed") return true
        if (guardOf(originOf(target)).holding) return false
        // Without an answer it may be our own network or resolver: then nobody has been reached since.
        return (
          reachedAt >= ref.acceptedAt ||
          (result.status !== undefined && result.at - reachedAt < reachedMillis)
        )
      }

      const append = <T extends StrikeMessage>(
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

      const against = Effect.fnUntraced(function* (
        ref: BroadcastRef,
        each: Recorded,
        cause: string
      ) {
        const { result, target } = each
        const next = isBelieved(ref, each, cause)
          ? strike(target.stored.strikes, cause, result.at, strikeIntervalMillis)
          : undefined
        if (next === undefined || target.stored.suspended !== undefined) return
        const status = result.status === undefined ? {} : { status: result.status }
        const of = { id: target.id, generation: target.stored.seq, broadcast: ref.broadcast }
        const evidence = { ...of, cause, ...status, worker, at: result.at }
        if (next === "suspend") yield* append(ref, each, "subscription.suspended/1", evidence)
        else yield* append(ref, each, "subscription.struck/1", { ...evidence, strike: next })
        metrics[next === "suspend" ? "suspended" : "struck"](
          new URL(originOf(target)).hostname,
          cause
        )
      })

      const weigh = Effect.fnUntraced(function* (ref: BroadcastRef, list: ReadonlyArray<Recorded>) {
        // All of them before the first is judged: who answers first is not to blame for the others' silence.
        for (const each of list) count(each)
        for (const each of list) {
          const { result, target } = each
          const cause = strikeOf(result)
          if (cause !== undefined) yield* against(ref, each, cause)
          if (result.fate === "delivered" && target.stored.strikes !== undefined) {
            const body = {
              id: target.id,
              generation: target.stored.seq,
              by: "push",
              at: result.at
            } as const
            yield* append(ref, each, "subscription.cleared/1", body)
          }
        }
      })

      return Strikes.of({ weigh })
    })
  )
}
