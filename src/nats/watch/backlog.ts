// The backlog of the streams, for metrics. The server is asked only when somebody reads the
// metrics, so that the counting costs the messages nothing.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { consumerInfo, lastSeqOf } from "../stream/info.ts"
import { type Stored, storedOf } from "../stream/stored.ts"

/** Anybody may request the metrics over HTTP, so the server is asked once in this time. */
const cachedMillis = 1_000
const timeoutMillis = 2_000

export interface Waiting {
  /** Name of the durable consumer. */
  readonly consumer: string
  /** Messages without an acknowledgement: not delivered, in hand, or waiting for a retry. */
  readonly messages: number
  /**
   * The first of them in its stream. Without the consumer: the first message behind those that were
   * acknowledged when the consumer was there.
   */
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

/** What was last known of a consumer. */
interface Known {
  /** Every message up to this sequence is acknowledged. */
  readonly floor: number
  readonly messages: number
}

const snapshotOf = (nats: Nats["Service"]) => {
  const known = new Map<string, Known>()
  const specs: ReadonlyArray<StreamSpec> = Object.values(streams)
  const consumers = specs.flatMap(({ consumers, name }) =>
    Object.values(consumers).map((spec) => waitingOf(nats, known, name, spec))
  )
  const appended = specs.map(({ name }) =>
    Effect.map(lastSeqOf(nats, name), (messages) => ({ stream: name, messages }))
  )
  const together = { concurrency: "unbounded" } as const
  return Effect.all(
    { waiting: Effect.all(consumers, together), appended: Effect.all(appended, together) },
    together
  ).pipe(Effect.timeout(timeoutMillis), Effect.mapError(failed))
}

const waitingOf = Effect.fnUntraced(function* (
  nats: Nats["Service"],
  known: Map<string, Known>,
  stream: string,
  { filters, name }: ConsumerSpec
) {
  const info = yield* consumerInfo(nats, stream, name)
  const now =
    info === undefined
      ? (known.get(name) ?? { floor: 0, messages: 0 })
      : { floor: info.ack_floor.stream_seq, messages: info.num_pending + info.num_ack_pending }
  known.set(name, now)
  if (info !== undefined && now.messages === 0)
    return { consumer: name, messages: 0, oldest: undefined }
  const seq = now.floor + 1
  const firsts = yield* Effect.forEach(filters, (filter) =>
    nats.message(stream, { seq, next_by_subj: filter })
  )
  const [first] = firsts
    .filter((each) => each !== undefined)
    .sort((one, other) => one.seq - other.seq)
  // Without the consumer nobody counts: say at least that something waits, or that nothing does.
  const guess = first === undefined ? 0 : Math.max(1, now.messages)
  const messages = info === undefined ? guess : now.messages
  return { consumer: name, messages, oldest: first && storedOf(first) }
})
