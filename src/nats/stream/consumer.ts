// Durable consumers: JetStream gives each message to one worker, and again after a delay if the
// worker asks for that or dies. Each process handles a bounded number of messages at a time.

import type { JsMsg } from "@nats-io/jetstream"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis } from "#clock/clocks.ts"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec } from "#streams/spec.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { runForever } from "../connection/again.ts"
import { Nats } from "../connection/connection.ts"
import { attempt, type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { WorkTally } from "../connection/processes.ts"
import { Processes } from "../connection/processes.ts"
import type { StreamKey } from "./append.ts"
import { refusalOf } from "./later.ts"
import { makePulling, type Pulling } from "./pull.ts"
import { type Stored, storedOfGiven } from "./stored.ts"

/**
 * How a handler ends. Done: acknowledge. Later: deliver again after a delay. Never: do not deliver
 * again. Leave: say nothing; another worker has the message. A message with a hindrance has not
 * ended: something that it needs is away.
 */
export type Ack =
  | { readonly _tag: "Done" }
  | { readonly _tag: "Later"; readonly afterMillis: number; readonly hindrance?: string }
  | { readonly _tag: "Never"; readonly reason: string }
  | { readonly _tag: "Leave" }
export const leave: Ack = { _tag: "Leave" }
export const done: Ack = { _tag: "Done" }
export const later = (afterMillis: number): Ack => ({
  _tag: "Later",
  afterMillis
})
/** Delivers again what cannot be handled now, and says why: the heartbeat may show it. */
export const hindered = (afterMillis: number, hindrance: string): Ack => ({
  _tag: "Later",
  afterMillis,
  hindrance
})
export const never = (reason: string): Ack => ({ _tag: "Never", reason })

export interface Delivery extends Stored {
  /** From 1. A second delivery may follow a crash as well as a `later`. */
  readonly deliveryCount: number
}

type Handle<E, R> = (delivery: Delivery) => Effect.Effect<Ack, E, R>
/**
 * Ends a message on which the handler dies again and again. Returns how to acknowledge the message
 * once its end is recorded, or `keep`: it is delivered again, ever more rarely, until it succeeds.
 */
type GiveUp<E, R> = (delivery: Delivery, reason: string) => Effect.Effect<Ack | Keep, E, R>
interface Keep {
  readonly _tag: "Keep"
}
export const keep: Keep = { _tag: "Keep" }

type Durable = { [K in StreamKey]: keyof (typeof streams)[K]["consumers"] }

const handlerFails = "their handler fails, and the log of its process says why"
/** A message whose handler failed is delivered again after this time. */
const failedAfterMillis = 5_000
/**
 * A message whose handler died so often in this process is given up or kept: it would die for ever.
 * A handler that fails, because NATS is away or full, is not the message's fault, and tries again.
 */
export const deathsMax = 5
/**
 * The longest delay of a kept message. A shard that dies after it sent pushes, and before it stored
 * their outcomes, sends them again each time.
 */
const keptMillisMax = 60 * 60_000
/** Why a message is given up, as its rejection or its end says. */
export const gaveUp = `the service failed on this message ${deathsMax} times: its log says why`
/**
 * Messages whose deaths are counted at a time, about 100 bytes each: as many as `deliver` may have
 * in hand. A consumer without such a limit may have more, and those beyond wait for room.
 */
const countedMax = 65_536
/** The longest delay for the server: nats-server ignores a delay that it cannot parse. */
const laterMillisMax = 24 * 60 * 60_000
/**
 * Normal for a push that waits for its push service. Of a shard or a broadcast, worth a warning.
 */
const manyDeliveries = 100
const again = "500 millis"
/** A worker beyond the limit looks so often whether it may work. */
const restMillis = 1_000

/**
 * For handlers that take long: says that a part of the message ended, such as some of the pushes of
 * a shard. Outside of a handler it does nothing.
 */
export const HandlerProgress = Context.Reference<{ readonly goesOn: Effect.Effect<void> }>(
  "bellcast/nats/HandlerProgress",
  { defaultValue: () => ({ goesOn: Effect.void }) }
)

export class Consumers extends Context.Service<
  Consumers,
  {
    /**
     * Handles the messages of a durable consumer, `concurrency` at a time, without end. A handler
     * must end within its own time-outs: shutdown does not interrupt handlers, so that they can
     * record what they did. While a handler runs, the server is told that work goes on. After five
     * deaths of the handler, `giveUp` records why and returns how to end, or keeps the message.
     * `limit` returns how many may be handled now, where that changes; messages that are handled
     * are not waited for, and a worker that waits already takes one more.
     */
    readonly each: <S extends StreamKey, E, R>(
      stream: S,
      durable: Durable[S],
      concurrency: number,
      handle: Handle<E, R>,
      giveUp: GiveUp<E, R>,
      limit?: () => number
    ) => Effect.Effect<never, never, R>
  }
>()("bellcast/nats/Consumers") {
  static readonly layer = Layer.effect(
    Consumers,
    Effect.gen(function* () {
      const nats = yield* Nats
      const { tally } = yield* Processes
      return Consumers.of({
        each: (stream, durable, concurrency, handle, giveUp, limit = () => concurrency) => {
          const spec = specOf(stream, durable)
          const logs = logsOf(spec.name)
          const { name } = spec
          const guarded = makeGuard(logs, readable(tally, stream, logs, handle), giveUp)
          const goesOn = { goesOn: Effect.sync(() => tally.end(name)) }
          const told: typeof guarded = (msg) =>
            Effect.provideService(guarded(msg), HandlerProgress, goesOn)
          const hands = { concurrency, limit }
          const run = consume(nats, stream, spec, hands, told, { logs, tally }).pipe(
            Effect.tapError(() => Effect.sync(() => tally.refuse(name)))
          )
          return runForever(Effect.scoped(run), again, logs.restarted)
        }
      })
    })
  )
}

/** The latest delivery of each message that is handled, by its sequence in the stream. */
type InHand = Map<number, JsMsg>

const specOf = (stream: StreamKey, durable: PropertyKey) =>
  (streams[stream].consumers as Record<PropertyKey, ConsumerSpec>)[durable]!

/** Rate-limited: during an outage, every message of every worker fails again and again. */
const logsOf = (name: string) => ({
  restarted: makeRateLimitedLog(`${name} failed and starts again`, Effect.logError),
  unpulled: makeRateLimitedLog(`${name}: messages cannot be pulled, again in ${again}`),
  unreadable: makeRateLimitedLog(
    `${name}: a message is of a later version, and is given back`,
    Effect.logError
  ),
  redelivered: makeRateLimitedLog(`${name}: a message was delivered many times`),
  failed: makeRateLimitedLog(
    `${name}: a message failed, again in ${failedAfterMillis} ms`,
    Effect.logError
  ),
  kept: makeRateLimitedLog(
    `${name}: a message failed ${deathsMax} times or more and is kept: report this defect`,
    Effect.logError
  ),
  gaveUp: makeRateLimitedLog(
    `${name}: a message failed ${deathsMax} times and is given up`,
    Effect.logError
  )
})
type Logs = ReturnType<typeof logsOf>

/** How many messages are handled at a time: at most, and now. */
interface Hands {
  readonly concurrency: number
  readonly limit: () => number
}

/** Where a consumer reports what becomes of its messages. */
interface Reports {
  readonly logs: Logs
  readonly tally: WorkTally
}

/**
 * Counts the deaths of each message, by its sequence. Messages that die in turns must not drop one
 * another: each would be forgotten before its last death. So the first ones are counted to their
 * end, and make room for others. What died last two of the longest delays ago went to another
 * process, and makes room, too.
 */
export class Deaths {
  /** In the order of the last death. */
  readonly #counted = new Map<number, { readonly count: number; readonly at: number }>()
  readonly #max: number

  constructor(max = countedMax) {
    this.#max = max
  }

  /** Counts one more. Undefined: there is no room for this message. */
  add(seq: number, at: number): number | undefined {
    const count = (this.#counted.get(seq)?.count ?? 0) + 1
    this.#counted.delete(seq)
    if (this.#counted.size >= this.#max) {
      const [oldest] = this.#counted
      if (oldest === undefined || at - oldest[1].at < 2 * keptMillisMax) return undefined
      this.#counted.delete(oldest[0])
    }
    this.#counted.set(seq, { count, at })
    return count
  }

  end(seq: number): void {
    this.#counted.delete(seq)
  }
}

/** A handler that ends each message, whatever happens. */
type Guarded<R> = (msg: JsMsg) => Effect.Effect<Ack, never, R>

/** The delay of a kept message: twice the last one after each death, 10 s after the fifth. */
const keptMillis = (deaths: number): number =>
  Math.min(failedAfterMillis * 2 ** (deaths - deathsMax + 1), keptMillisMax)

/** Gives back what only a later version reads, which a process of that version may take. */
const readable =
  <E, R>(tally: WorkTally, stream: StreamKey, logs: Logs, handle: Handle<E, R>): Handle<E, R> =>
  (delivery) => {
    const refusal = refusalOf(tally, stream, delivery)
    if (refusal === undefined) return handle(delivery)
    const reason = (refusal.cause as Error).message
    return Effect.as(logs.unreadable({ reason }), hindered(failedAfterMillis, reason))
  }

/** Decoding is guarded, too: what it throws must end the message, not the worker. */
const makeGuard = <E, R>(logs: Logs, handle: Handle<E, R>, giveUp: GiveUp<E, R>): Guarded<R> => {
  const deaths = new Deaths()
  const again = (seq: number, cause: Cause.Cause<E>) =>
    Effect.as(
      logs.failed({ seq, err: Cause.squash(cause) }),
      hindered(failedAfterMillis, handlerFails)
    )
  const ended = Effect.fnUntraced(function* (msg: JsMsg, cause: Cause.Cause<E>) {
    const { seq } = msg
    if (!Cause.hasDies(cause)) return yield* again(seq, cause)
    const count = deaths.add(seq, yield* monotonicMillis)
    if (count === undefined || count < deathsMax) return yield* again(seq, cause)
    const ack = yield* Effect.suspend(() => giveUp(deliveryOf(msg), gaveUp)).pipe(
      Effect.catchCause(
        (failure): Effect.Effect<Ack | Keep> =>
          // NATS may be away: next time, the handler gets one more chance before. If `giveUp`
          // dies, no end is recorded.
          Cause.hasDies(failure) ? Effect.succeed(keep) : again(seq, failure)
      )
    )
    if (ack._tag === "Keep") {
      const againMillis = keptMillis(count)
      yield* logs.kept({ seq, deaths: count, againMillis, err: Cause.squash(cause) })
      return hindered(againMillis, handlerFails)
    }
    if (ack._tag === "Later") return ack
    deaths.end(seq)
    yield* logs.gaveUp({ seq, err: Cause.squash(cause) })
    return ack
  })
  return (msg) =>
    Effect.suspend(() => handle(deliveryOf(msg))).pipe(
      Effect.tap(() => Effect.sync(() => deaths.end(msg.seq))),
      Effect.catchCause((cause) => ended(msg, cause))
    )
}

const consume = Effect.fnUntraced(function* <R>(
  { js }: Nats["Service"],
  stream: StreamKey,
  spec: ConsumerSpec,
  { concurrency, limit }: Hands,
  handle: Guarded<R>,
  { logs, tally }: Reports
) {
  const { name } = spec
  const failed = unavailable(`consume ${name}`)
  const consumer = yield* attempt(`consume ${name}`, () =>
    js.consumers.get(streams[stream].name, name)
  )
  const pulling = yield* Effect.acquireRelease(
    Effect.sync(() => makePulling(consumer, () => tally.accept(name))),
    ({ stop }) => Effect.sync(stop)
  )
  const inHand: InHand = new Map()
  // Pull only for idle workers: a message that waits in a process expires, and no other process
  // gets it.
  const next = nextOf(pulling, failed).pipe(
    Effect.flatMap((msg) => handleOne({ logs, tally }, name, inHand, msg, handle)),
    // A worker that cannot pull must not stop the others, which may have messages.
    Effect.catch(({ cause }) => {
      tally.refuse(name)
      return Effect.delay(logs.unpulled({ reason: String(cause) }), again)
    })
  )
  const worker = (number: number) =>
    Effect.forever(Effect.suspend(() => (number < limit() ? next : Effect.sleep(restMillis))))
  // Runs until the scope closes, so also while uninterruptible workers finish their messages.
  yield* Effect.forkIn(reportProgress(inHand, spec), yield* Effect.scope)
  yield* Effect.all(
    Array.from({ length: concurrency }, (_, number) => worker(number)),
    { concurrency: "unbounded", discard: true }
  )
})

const nextOf = (pulling: Pulling, failed: (cause: unknown) => NatsUnavailable) =>
  Effect.callback<JsMsg, NatsUnavailable>((resume) => {
    const stop = pulling.next((result) =>
      resume("msg" in result ? Effect.succeed(result.msg) : Effect.fail(failed(result.failure)))
    )
    return Effect.sync(stop)
  })

/** Tells the server that work goes on, three times before it would deliver the messages again. */
const reportProgress = (inHand: InHand, { ackWaitMillis }: ConsumerSpec) =>
  Effect.sync(() => {
    for (const msg of inHand.values()) msg.working()
  }).pipe(Effect.delay(ackWaitMillis / 3), Effect.forever)

const deliveryOf = (msg: JsMsg): Delivery => ({
  ...storedOfGiven(msg),
  deliveryCount: msg.info.deliveryCount
})

/** The message is over, but nothing came of it: no progress. */
const isGivenUp = (ack: Ack): boolean => ack._tag === "Never" && ack.reason === gaveUp

const acknowledge = (msg: JsMsg, ack: Ack): void => {
  if (ack._tag === "Done") msg.ack()
  else if (ack._tag === "Later") msg.nak(Math.min(ack.afterMillis, laterMillisMax))
  else if (ack._tag === "Never") msg.term(ack.reason)
}

const handleOne = Effect.fnUntraced(function* <R>(
  { logs: { redelivered }, tally }: Reports,
  reader: string,
  inHand: InHand,
  msg: JsMsg,
  handle: Guarded<R>
) {
  // A consumer that was made again, or one that lost patience, delivers what is being handled.
  const isHandled = inHand.has(msg.seq)
  inHand.set(msg.seq, msg)
  if (isHandled) return
  const { deliveryCount } = msg.info
  if (deliveryCount % manyDeliveries === 0)
    yield* redelivered({ seq: msg.seq, deliveries: deliveryCount })
  tally.take(reader, msg.seq)
  const ack = yield* handle(msg)
  acknowledge(inHand.get(msg.seq)!, ack)
  if (ack._tag === "Later" && ack.hindrance !== undefined)
    tally.hinder(reader, msg.seq, ack.hindrance)
  else if (ack._tag === "Leave" || isGivenUp(ack)) tally.drop(reader, msg.seq)
  else tally.end(reader, msg.seq)
  inHand.delete(msg.seq)
}, Effect.uninterruptible)
