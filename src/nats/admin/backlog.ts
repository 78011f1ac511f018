// What waits in the streams, for metrics: read from the server's books when somebody asks, so that it costs the messages themselves nothing.
import { Context, Effect, Layer } from "effect"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { type Stored, storedOf } from "../stream/stored.ts"

/** However often one asks: anybody may, over HTTP. */
const heldMillis = 1_000
const timeoutMillis = 2_000

export interface Waiting {
  /** Name of the durable consumer. */
  readonly consumer: string
  /** Messages it has not been answered for: not given to anybody yet, in somebody's hands, or to be delivered again later. */
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
    /** Every durable consumer and stream there is, at most a second old. */
    readonly snapshot: Effect.Effect<Snapshot, NatsUnavailable>
  }
>()("bellcast/nats/Backlog") {
  static readonly layer = Layer.effect(
    Backlog,
    Effect.gen(function* () {
      const { jsm, message } = yield* Nats

      const failed = unavailable("backlog")
      const asked = <A>(run: () => Promise<A>) => Effect.tryPromise({ try: run, catch: failed })

      const waitingOf = Effect.fnUntraced(function* (
        stream: string,
        { filters, name }: ConsumerSpec
      ) {
        const { ack_floor, num_ack_pending, num_pending } = yield* asked(() =>
          jsm.consumers.info(stream, name)
        )
        const messages = num_pending + num_ack_pending
        if (messages === 0) return { consumer: name, messages, oldest: undefined }
        // Everything up to the floor is answered for.
        const seq = ack_floor.stream_seq + 1
        const firsts = yield* Effect.forEach(filters, (filter) =>
          message(stream, { seq, next_by_subj: filter })
        )
        const found = firsts
          .filter((each) => each !== undefined)
          .sort((one, other) => one.seq - other.seq)
        return { consumer: name, messages, oldest: found[0] && storedOf(found[0]) }
      })

      const appendedTo = (stream: string) =>
        Effect.map(
          asked(() => jsm.streams.info(stream)),
          ({ state }) => ({ stream, messages: state.last_seq })
        )

      const each: ReadonlyArray<StreamSpec> = Object.values(streams)
      const snapshot = yield* Effect.all(
        {
          waiting: Effect.all(
            each.flatMap(({ consumers, name }) =>
              Object.values(consumers).map((spec) => waitingOf(name, spec))
            ),
            { concurrency: "unbounded" }
          ),
          appended: Effect.forEach(each, ({ name }) => appendedTo(name), {
            concurrency: "unbounded"
          })
        },
        { concurrency: "unbounded" }
      ).pipe(
        Effect.timeout(timeoutMillis),
        Effect.mapError(failed),
        Effect.cachedWithTTL(heldMillis)
      )
      return Backlog.of({ snapshot })
    })
  )
}
