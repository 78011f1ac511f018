// Durable consumers: every message to one worker, with bounded concurrency. Redelivery is JetStream's, and so is the delay of a retry.
import type { JsMsg } from "@nats-io/jetstream"
import { Cause, Context, Effect, Layer, Schedule } from "effect"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec } from "#streams/spec.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { StreamKey } from "./event-log.ts"
import { makePulling, type Pulling } from "./pull.ts"
import { type Stored, storedOfGiven } from "./stored.ts"

/** What becomes of a message: done with; come back later; never deliver it again, for a reason; or leave it to another worker. */
export type Ack =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Later"; readonly afterMillis: number }
  | { readonly _tag: "Never"; readonly reason: string }
  | { readonly _tag: "Leave" }
export const leave: Ack = { _tag: "Leave" }
export const done: Ack = { _tag: "Done" }
export const later = (afterMillis: number): Ack => ({
  _tag: "Later",
  afterMillis
})
export const never = (reason: string): Ack => ({ _tag: "Never", reason })

export interface Delivery extends Stored {
  /** From 1; a second delivery may follow a crash as well as a `later`. */
  readonly deliveryCount: number
}

type Durable = { [K in StreamKey]: keyof (typeof streams)[K]["consumers"] }

/** A message whose handler failed unexpectedly comes back after this long. */
const failedAfterMillis = 5_000
/** Who has to wait longer is told so again; what the server cannot read as a delay is none. */
const laterMillisMax = 24 * 60 * 60_000
/** A push that waits for its service comes back often; a shard or a broadcast that does is worth a look. */
const manyDeliveries = 100
const again = "500 millis"
const restart = Schedule.spaced(again)

const deliveryOf = (msg: JsMsg): Delivery => ({
  ...storedOfGiven(msg),
  deliveryCount: msg.info.deliveryCount
})

const answer = (msg: JsMsg, ack: Ack): void => {
  if (ack._tag === "Done") msg.ack()
  else if (ack._tag === "Later") msg.nak(Math.min(ack.afterMillis, laterMillisMax))
  else if (ack._tag === "Never") msg.term(ack.reason)
}

export class Consumers extends Context.Service<
  Consumers,
  {
    /**
     * Handles every message, `concurrency` at a time, for ever. A handler must end by itself within its own time-outs; it is not
     * interrupted, so that what is in hand is recorded on shutdown. While it runs, the server is told that work goes on.
     */
    readonly each: <S extends StreamKey, E, R>(
      stream: S,
      durable: Durable[S],
      concurrency: number,
      handle: (delivery: Delivery) => Effect.Effect<Ack, E, R>
    ) => Effect.Effect<never, never, R>
  }
>()("bellcast/nats/Consumers") {
  static readonly layer = Layer.effect(
    Consumers,
    Effect.gen(function* () {
      const { js } = yield* Nats

      const specOf = (stream: StreamKey, durable: PropertyKey) =>
        (streams[stream].consumers as Record<PropertyKey, ConsumerSpec>)[durable]!

      /** A consumer that ends or fails is opened again: a stage that stops in silence is the worst outcome. */
      const forever = <E, R>(
        name: string,
        run: Effect.Effect<void, E, R>
      ): Effect.Effect<never, never, R> =>
        run.pipe(
          Effect.catchCause((cause) =>
            Cause.hasInterruptsOnly(cause)
              ? Effect.interrupt
              : Effect.logError(`${name} failed and starts again`, cause)
          ),
          Effect.repeat(restart),
          Effect.andThen(Effect.never)
        )

      const each = <S extends StreamKey, E, R>(
        stream: S,
        durable: Durable[S],
        concurrency: number,
        handle: (delivery: Delivery) => Effect.Effect<Ack, E, R>
      ) => {
        const spec = specOf(stream, durable)
        const warn = makeRateLimitedLog(
          `${spec.name}: messages cannot be pulled, again in ${again}`
        )
        const failed = unavailable(`consume ${spec.name}`)
        const nextOf = (pulling: Pulling) =>
          Effect.callback<JsMsg, NatsUnavailable>((resume) => {
            const stop = pulling.next((result) =>
              resume(
                "msg" in result ? Effect.succeed(result.msg) : Effect.fail(failed(result.failure))
              )
            )
            return Effect.sync(stop)
          })
        const inHand = new Set<JsMsg>()
        const beat = Effect.sync(() => {
          for (const msg of inHand) msg.working()
        }).pipe(Effect.delay(spec.ackWaitMillis / 3), Effect.forever)
        const one = Effect.fnUntraced(function* (msg: JsMsg) {
          inHand.add(msg)
          if (msg.info.deliveryCount % manyDeliveries === 0)
            yield* Effect.logWarning(
              `${spec.name}: message ${msg.seq} comes back again and again`,
              { deliveries: msg.info.deliveryCount }
            )
          const ack = yield* handle(deliveryOf(msg)).pipe(
            Effect.catchCause((cause) =>
              Effect.logError(
                `${spec.name}: message ${msg.seq} failed, again in ${failedAfterMillis} ms`,
                cause
              ).pipe(Effect.as(later(failedAfterMillis)))
            )
          )
          inHand.delete(msg)
          answer(msg, ack)
        }, Effect.uninterruptible)
        return forever(
          spec.name,
          Effect.scoped(
            Effect.gen(function* () {
              const consumer = yield* Effect.tryPromise({
                try: () => js.consumers.get(streams[stream].name, spec.name),
                catch: failed
              })
              const pulling = yield* Effect.acquireRelease(
                Effect.sync(() => makePulling(consumer)),
                ({ stop }) => Effect.sync(stop)
              )
              // No message is taken in advance: it would age unanswered, and no other process
              // could have it.
              const worker = nextOf(pulling).pipe(
                Effect.flatMap(one),
                // A worker that cannot pull must not stop the others, which may hold messages.
                Effect.catch((error) => Effect.delay(warn({ reason: String(error.cause) }), again)),
                Effect.forever
              )
              // Goes on while workers finish what they have in hand: they are not interrupted.
              yield* Effect.forkIn(beat, yield* Effect.scope)
              yield* Effect.all(
                Array.from({ length: concurrency }, () => worker),
                { concurrency: "unbounded", discard: true }
              )
            })
          )
        )
      }

      return Consumers.of({ each })
    })
  )
}
