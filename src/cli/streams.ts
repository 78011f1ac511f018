// `bellcast streams`: shows streams, consumers, followers and buckets as declared in streams/; with
// --live, also their state on the server.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import {
  bucketState,
  consumerState,
  countAfter,
  type StreamState,
  streamState
} from "#nats/admin/maintenance.ts"
import { replicasMax, setReplicas } from "#nats/admin/start-checks.ts"
import type { Nats } from "#nats/connection/connection.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { levelOf } from "#nats/watch/space.ts"
import { type BucketName, bucketNames, buckets, metaKey } from "#streams/buckets.ts"
import { type FollowerName, followerNames, followers } from "#streams/followers.ts"
import { allStreams, consumers, streams } from "#streams/index.ts"
import type { ConsumerSpec, StreamSpec } from "#streams/spec.ts"
import { natsFlags, onNats } from "./nats/on-nats.ts"
import { number, onOff, ownSettings } from "./terminal/input.ts"
import { type Cell, noted, table } from "./terminal/output.ts"

const dayMillis = 86_400_000
const minuteMillis = 60_000

const spanOf = (millis: number): string => {
  if (millis === 0) return "for ever"
  if (millis % dayMillis === 0) return `${millis / dayMillis} d`
  return millis % minuteMillis === 0 ? `${millis / minuteMillis} min` : `${millis / 1000} s`
}

const sizeOf = (bytes: number): string => {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 3)
  return `${Math.round((bytes / 1024 ** power) * 10) / 10} ${["B", "KiB", "MiB", "GiB"][power]}`
}

const unbounded = (limit: number): Cell => (limit === -1 ? "any" : limit)

interface Row {
  readonly cells: ReadonlyArray<Cell>
  /**
   * The same cells and those of the server's state. Without the latter: it is not on the server.
   */
  readonly live: Effect.Effect<ReadonlyArray<Cell>, NatsUnavailable, Nats | Buckets>
}
interface Section {
  readonly heading: ReadonlyArray<string>
  readonly live: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
}

/** How full a stream is, with a mark where the log of the service warns of it. */
const fullnessOf = (state: StreamState, refuses = true): Cell => {
  const { bytes, bytesMax } = state
  if (bytesMax <= 0) return undefined
  const mark = refuses && levelOf(state, 0) > 0 ? " !" : ""
  return `${Math.floor((100 * bytes) / bytesMax)} %${mark}`
}

/** Shows the limit on the server where it is known, as settings change it. */
const streamRow = (spec: StreamSpec, historyDays: number): Row => {
  const isLog = spec.name === streams.log.name
  const cells = (bytesMax: number) => [
    spec.name,
    spec.subjects.join(" "),
    // No age ends a message of LOG: the projector deletes those that nothing rests on.
    isLog ? `history, ${historyDays} d` : spanOf(spec.maxAgeMillis),
    sizeOf(bytesMax),
    sizeOf(spec.maxMessageBytes)
  ]
  return {
    cells: cells(spec.maxBytes),
    live: Effect.map(streamState(spec), (state) =>
      state === undefined
        ? cells(spec.maxBytes)
        : [
            ...[...cells(state.bytesMax), state.messages, sizeOf(state.bytes)],
            ...[fullnessOf(state), state.replicas]
          ]
    )
  }
}

const consumerRow = (stream: StreamSpec, spec: ConsumerSpec): Row => {
  const limits = [
    spanOf(spec.ackWaitMillis),
    unbounded(spec.maxDeliver),
    unbounded(spec.maxAckPending)
  ]
  const cells = [spec.name, stream.name, spec.filters.join(" "), ...limits]
  return {
    cells,
    live: Effect.map(consumerState(stream, spec), (state) =>
      state === undefined ? cells : [...cells, state.num_pending, state.num_ack_pending]
    )
  }
}

const followerRow = (name: FollowerName): Row => {
  const { checkpoint, filters, stream } = followers[name]
  const cells = [
    name,
    streams[stream].name,
    filters.join(" "),
    `${buckets[checkpoint].name}/${metaKey}`
  ]
  return {
    cells,
    live: Effect.gen(function* () {
      const meta = yield* (yield* Buckets).get(checkpoint, metaKey)
      const seq = meta?.value.seq ?? 0
      // Not the difference of sequences: it includes messages for others.
      const behind = yield* countAfter(streams[stream], filters, seq)
      return behind === undefined ? cells : [...cells, behind]
    })
  }
}

const bucketRow = (name: BucketName): Row => {
  const { forgets, maxBytes, maxValueBytes, name: bucket, ttlMillis } = buckets[name]
  const cells = (bytesMax: number) => [
    ...[bucket, spanOf(ttlMillis), sizeOf(bytesMax), sizeOf(maxValueBytes)]
  ]
  return {
    cells: cells(maxBytes),
    live: Effect.map(bucketState(name), (state) =>
      state === undefined
        ? cells(maxBytes)
        : [
            ...[...cells(state.bytesMax), Math.max(0, state.messages - 1), sizeOf(state.bytes)],
            // A bucket that forgets is full as a rule: a new entry takes the place of the oldest.
            fullnessOf(state, !forgets)
          ]
    )
  }
}

const sectionsWith = (historyDays: number): ReadonlyArray<Section> => [
  {
    heading: ["STREAM", "SUBJECTS", "KEPT", "MAX", "MAX MESSAGE"],
    live: ["MESSAGES", "BYTES", "FULL", "COPIES"],
    rows: allStreams.map((spec) => streamRow(spec, historyDays))
  },
  {
    heading: ["CONSUMER", "STREAM", "SUBJECTS", "ACK WAIT", "DELIVERIES", "IN HAND"],
    live: ["PENDING", "UNANSWERED"],
    rows: consumers.map(({ consumer, stream }) => consumerRow(stream, consumer))
  },
  {
    heading: ["FOLLOWER", "STREAM", "SUBJECTS", "CHECKPOINT"],
    // By its checkpoint, which is written once a second.
    live: ["BEHIND"],
    rows: followerNames.map(followerRow)
  },
  {
    heading: ["BUCKET", "KEPT", "MAX", "MAX VALUE"],
    live: ["ENTRIES", "BYTES", "FULL"],
    rows: bucketNames.map(bucketRow)
  }
]

/** The history is that of the setting here, which may differ from that of the service. */
const sections = Effect.map(ownSettings("historyDays"), ({ historyDays }) =>
  sectionsWith(historyDays)
)

const declared = Effect.map(sections, (all) =>
  all
    .map(({ heading, rows }) =>
      table(
        heading,
        rows.map(({ cells }) => cells)
      )
    )
    .join("\n\n")
)

const withLive = Effect.flatMap(sections, (all) =>
  Effect.forEach(all, ({ heading, live, rows }) =>
    Effect.map(
      Effect.forEach(rows, (row) => row.live),
      // Unknown cells of a row stay empty.
      (lines) =>
        table(
          [...heading, ...live],
          lines.map((cells) => [...heading, ...live].map((_, i) => cells[i]))
        )
    )
  )
).pipe(Effect.map((tables) => tables.join("\n\n")))

const flags = {
  ...natsFlags,
  live: onOff("live", "Also show how full streams and buckets are, and who is behind"),
  replicas: number("replicas", "N").pipe(
    Flag.withDescription(
      `Keep this many copies of every stream and bucket (1 to ${replicasMax}), more or fewer`
    ),
    Flag.filter(
      (replicas) => replicas >= 1 && replicas <= replicasMax,
      () => `expected 1 to ${replicasMax}`
    ),
    Flag.optional
  )
}

/** The verb. */
export const streamsCommand = Command.make("streams", flags, ({ live, replicas, ...nats }) => {
  if (Option.isNone(replicas) && !live)
    return Effect.flatMap(declared, (text) => Console.log(text)).pipe(noted)
  const printed = Effect.gen(function* () {
    if (Option.isNone(replicas)) return yield* Console.log(yield* withLive)
    yield* setReplicas(replicas.value)
    // The state is not shown after a change: its leaders are elected anew then.
    yield* Console.log(`copies of each stream and bucket: ${replicas.value}`)
  })
  return onNats(nats)(printed)
}).pipe(Command.withDescription("Show streams, consumers, followers and buckets, or set copies"))
