// The backlog of the streams, for metrics. The server is asked only when somebody reads the
// metrics, so that the counting costs the messages nothing.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type FollowerName, followerNames, followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { readCheckpoint } from "../follower/checkpoint.ts"
import { Buckets } from "../kv/bucket.ts"
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
  /** When the first message was stored that no process took yet; undefined: all were taken. */
  readonly dueAt: number | undefined
}

/** The backlog of a follower. */
export interface Following {
  readonly follower: string
  /** Messages behind the checkpoint, those that the follower passes over included. */
  readonly messages: number
  /** When the first of its messages was stored that it did not apply; undefined: there is none. */
  readonly dueAt: number | undefined
}

export interface Snapshot {
  readonly waiting: ReadonlyArray<Waiting>
  readonly following: ReadonlyArray<Following>
  /** Messages ever appended, by stream. */
  readonly appended: ReadonlyArray<{
    readonly stream: string
    readonly messages: number
  }>
}

export class Backlog extends Context.Service<
  Backlog,
  {
    /** Every durable consumer, follower and stream, as of at most a second ago. */
    readonly snapshot: Effect.Effect<Snapshot, NatsUnavailable>
  }
>()("bellcast/nats/Backlog") {
  static readonly layer = Layer.effect(
    Backlog,
    Effect.gen(function* () {
      const snapshot = snapshotOf(yield* Nats, yield* Buckets)
      return Backlog.of({
        snapshot: yield* snapshot.pipe(Effect.cachedWithTTL(cachedMillis))
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

const snapshotOf = (nats: Nats["Service"], buckets: Buckets["Service"]) => {
  const known = new Map<string, Known>()
  const specs: ReadonlyArray<StreamSpec> = Object.values(streams)
  const consumers = specs.flatMap(({ consumers, name }) =>
    Object.values(consumers).map((spec) => waitingOf(nats, known, name, spec))
  )
  const appended = specs.map(({ name }) =>
    Effect.map(lastSeqOf(nats, name), (messages) => ({ stream: name, messages }))
  )
  const following = followerNames.map((name) => followingOf(nats, buckets, name))
  const together = { concurrency: "unbounded" } as const
  return Effect.all(
    {
      waiting: Effect.all(consumers, together),
      following: Effect.all(following, together),
      appended: Effect.all(appended, together)
    },
    together
  ).pipe(Effect.timeout(timeoutMillis), Effect.mapError(failed))
}

/** The first message from a sequence on that one of the filters matches. */
const firstFrom = Effect.fnUntraced(function* (
  nats: Nats["Service"],
  stream: string,
  filters: ReadonlyArray<string>,
  seq: number
) {
  const firsts = yield* Effect.forEach(filters, (filter) =>
    nats.message(stream, { seq, next_by_subj: filter })
  )
  const [first] = firsts
    .filter((each) => each !== undefined)
    .sort((one, other) => one.seq - other.seq)
  return first && storedOf(first)
})

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
    return { consumer: name, messages: 0, oldest: undefined, dueAt: undefined }
  const oldest = yield* firstFrom(nats, stream, filters, now.floor + 1)
  if (info !== undefined) {
    const isDue = info.num_pending > 0
    const due = isDue
      ? yield* firstFrom(nats, stream, filters, info.delivered.stream_seq + 1)
      : undefined
    return { consumer: name, messages: now.messages, oldest, dueAt: due?.at }
  }
  // Without the consumer nobody counts: say at least that something waits, or that nothing does.
  const messages = oldest === undefined ? 0 : Math.max(1, now.messages)
  return { consumer: name, messages, oldest, dueAt: oldest?.at }
})

const followingOf = Effect.fnUntraced(function* (
  nats: Nats["Service"],
  buckets: Buckets["Service"],
  name: FollowerName
) {
  const { filters, stream } = followers[name]
  const { seq } = yield* readCheckpoint(buckets, name)
  const next = yield* firstFrom(nats, streams[stream].name, filters, seq + 1)
  if (next === undefined) return { follower: name, messages: 0, dueAt: undefined }
  const last = yield* lastSeqOf(nats, streams[stream].name)
  return { follower: name, messages: Math.max(1, last - seq), dueAt: next.at }
})
