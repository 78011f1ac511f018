// The backlog of the streams, for metrics. The server is asked only when somebody reads the
// metrics, so that the counting costs the messages nothing.
import { Context, Effect, Layer } from "effect"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { type Stored, storedOf } from "../stream/stored.ts"

/** Anybody may request the metrics over HTTP, so the server is asked once in this time. */
const cachedMillis = 1_000
const timeoutMillis = 2_000

export interface Waiting {
  /** Name of the durable consumer. */
  readonly consumer: string
  /** Messages without an acknowledgement: not delivered, in hand, or waiting for a retry. */
  readonly messages: number
  /** The first of them in its stream. */
  readonly oldest: Stored | undefined
}

export interface Snapshot {
  readonly waiting: ReadonlyArray<Waiting>
  /** Messages ever appended, by stream. */
  readonly appended: ReadonlyArray<{
    readonly stream: string
    readonly messages: number
  }>
}

export class Backlog extends Context.Service<
  Backlog,
  {
    /** Every durable consumer and stream, as of at most a second ago. */
    readonly snapshot: Effect.Effect<Snapshot, NatsUnavailable>
  }
>()("bellcast/nats/Backlog") {
  static readonly layer = Layer.effect(
    Backlog,
    Effect.gen(function* () {
      const nats = yield* Nats
      return Backlog.of({
        snapshot: yield* snapshotOf(nats).pipe(Effect.cachedWithTTL(cachedMillis))
      })
    })
  )
}

const failed = unavailable("backlog")

const snapshotOf = (nats: Nats["Service"]) => {
  const specs: ReadonlyArray<StreamSpec> = Object.values(streams)
  const consumers = specs.flatMap(({ consumers, name }) =>
    Object.values(consumers).map((spec) => waitingOf(nats, name, spec))
  )
  const appended = specs.map(({ name }) => appendedTo(nats, name))
  const together = { concurrency: "unbounded" } as const
  return Effect.all(
    { waiting: Effect.all(consumers, together), appended: Effect.all(appended, together) },
    together
  ).pipe(Effect.timeout(timeoutMillis), Effect.mapError(failed))
}

const waitingOf = Effect.fnUntraced(function* (
  { jsm, message }: Nats["Service"],
  stream: string,
  { filters, name }: ConsumerSpec
) {
  const { ack_floor, num_ack_pending, num_pending } = yield* Effect.tryPromise({
    try: () => jsm.consumers.info(stream, name),
    catch: failed
  })
  const messages = num_pending + num_ack_pending
  if (messages === 0) return { consumer: name, messages, oldest: undefined }
  // All messages up to the floor are acknowledged.
  const seq = ack_floor.stream_seq + 1
  const firsts = yield* Effect.forEach(filters, (filter) =>
    message(stream, { seq, next_by_subj: filter })
  )
  const found = firsts
    .filter((each) => each !== undefined)
    .sort((one, other) => one.seq - other.seq)
  return { consumer: name, messages, oldest: found[0] && storedOf(found[0]) }
})

const appendedTo = ({ jsm }: Nats["Service"], stream: string) =>
  Effect.map(
    Effect.tryPromise({ try: () => jsm.streams.info(stream), catch: failed }),
    ({ state }) => ({ stream, messages: state.last_seq })
  )
