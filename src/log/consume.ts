// Durable consumers: every message to one worker, with bounded concurrency. Redelivery is JetStream's, and so is the delay of a retry.
import type { ConsumerMessages, JsMsg } from "@nats-io/jetstream"
import { Cause, Context, Effect, Fiber, Layer, Queue, Schedule } from "effect"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec } from "#streams/spec.ts"
import { LogUnavailable } from "./errors.ts"
import { type Stored, type StreamKey, toStored } from "./log.ts"
import { Nats } from "./nats.ts"

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

// The client's default of 30 s leaves a consumer blind for 44 s after a server crash; with 2-5 s it is back in 3-7 s (measured).
const expiresMillis = 5_000
/** A message whose handler failed unexpectedly comes back after this long. */
const failedAfterMillis = 5_000
const restart = Schedule.spaced("500 millis")

const deliveryOf = (msg: JsMsg): Delivery => ({
  ...toStored({
    subject: msg.subject,
    seq: msg.seq,
    at: msg.time.getTime(),
    text: msg.string(),
    header: (name) => msg.headers?.get(name) ?? ""
  }),
  deliveryCount: msg.info.deliveryCount
})

const answer = (msg: JsMsg, ack: Ack): void => {
  if (ack._tag === "Done") msg.ack()
  else if (ack._tag === "Later") msg.nak(ack.afterMillis)
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
>()("bellcast/log/Consumers") {
  static readonly layer = Layer.effect(
    Consumers,
    Effect.gen(function* () {
      const { js } = yield* Nats

      /** Messages as they arrive. What nobody has taken when the scope closes goes back to the server at once, not after the ack wait. */
      const open = (stream: StreamKey, spec: ConsumerSpec, maxMessages: number) =>
        Effect.gen(function* () {
          const queue = yield* Queue.unbounded<JsMsg, LogUnavailable>()
          const gone = (cause: unknown) => new LogUnavailable({ operation: `consume ${spec.name}`, cause })
          yield* Effect.acquireRelease(
            Effect.tryPromise({
              try: async (): Promise<ConsumerMessages> => {
                const consumer = await js.consumers.get(streams[stream].name, spec.name)
                const options = {
                  max_messages: maxMessages,
                  expires: expiresMillis,
                  idle_heartbeat: expiresMillis / 2
                }
                const messages = await consumer.consume({
                  ...options,
                  callback: (msg) => void Queue.offerUnsafe(queue, msg)
                })
                void messages.closed().then((error) => {
                  Queue.failCauseUnsafe(queue, Cause.fail(gone(error ?? new Error("the consumer ended"))))
                })
                return messages
              },
              catch: gone
            }),
            (messages) =>
              Queue.clear(queue).pipe(
                Effect.map((waiting) => waiting.forEach((msg) => void msg.nak())),
                Effect.andThen(Effect.promise(() => messages.close())),
                Effect.timeoutOption("1 second"),
                Effect.ignore
              )
          )
          return queue
        })

      const specOf = (stream: StreamKey, durable: PropertyKey) => (streams[stream].consumers as Record<PropertyKey, ConsumerSpec>)[durable]!

      /** A consumer that ends or fails is opened again: a stage that stops in silence is the worst outcome. */
      const forever = <E, R>(name: string, run: Effect.Effect<void, E, R>): Effect.Effect<never, never, R> =>
        run.pipe(
          Effect.catchCause((cause) =>
            Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.logError(`${name} failed and starts again`, cause)
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
        const one = Effect.fnUntraced(function* (msg: JsMsg) {
          // A forked fiber can be interrupted although this one cannot.
          const beat = yield* Effect.forkChild(Effect.sync(() => msg.working()).pipe(Effect.delay(spec.ackWaitMillis / 3), Effect.forever))
          const ack = yield* handle(deliveryOf(msg)).pipe(
            Effect.catchCause((cause) =>
              Effect.logError(`${spec.name}: message ${msg.seq} failed, again in ${failedAfterMillis} ms`, cause).pipe(
                Effect.as(later(failedAfterMillis))
              )
            )
          )
          yield* Fiber.interrupt(beat)
          answer(msg, ack)
        }, Effect.uninterruptible)
        return forever(
          spec.name,
          Effect.scoped(
            Effect.gen(function* () {
              const queue = yield* open(stream, spec, concurrency)
              const worker = Queue.take(queue).pipe(Effect.flatMap(one), Effect.forever)
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
