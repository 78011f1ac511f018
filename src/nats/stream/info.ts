// How a stream or a durable consumer is now, as the server says.
import { AckPolicy, type ConsumerConfig } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import * as Effect from "effect/Effect"
import type { ConsumerSpec } from "#streams/spec.ts"
import type { Nats } from "../connection/connection.ts"
import {
  codeOf,
  consumerNotFound,
  type Failure,
  type NatsUnavailable,
  nothing,
  streamNotFound,
  unavailable
} from "../connection/errors.ts"

type Door = Pick<Nats["Service"], "request">

/** Metadata of streams and buckets that says in which form they store. */
export const formKey = "bellcast_form"
/** Metadata of LOG while buckets are made again: the form in which. */
export const makingKey = "bellcast_buckets_form"

/** Whether a later version stores in this form than in that one. Forms are whole numbers. */
export const isLaterForm = (form: string | undefined, own: string): boolean =>
  Number(form ?? 0) > Number(own)

/** The server has this long to answer, unless the caller gives another time. */
const timeoutMillisMax = 5_000

/** The part of the server's answer to STREAM.INFO that is read here. */
export interface StreamInfo {
  /** When the stream was created, as the server writes it. */
  readonly created: string
  /** The time of the server that leads the stream, as it writes it. */
  readonly ts: string
  readonly config: {
    readonly max_bytes: number
    readonly num_replicas: number
    readonly metadata?: Readonly<Record<string, string>>
  }
  /** Absent: a server of its own. */
  readonly cluster?: {
    readonly leader?: string
    /** When it began to lead; absent: the only copy. */
    readonly leader_since?: string
    /** The copies of other servers than the leader. */
    readonly replicas?: ReadonlyArray<{
      readonly name: string
      readonly current: boolean
      readonly offline?: boolean
    }>
  }
  readonly state: {
    readonly messages: number
    readonly bytes: number
    /** Of an empty stream one more than the last. */
    readonly first_seq: number
    readonly first_ts: string
    readonly last_seq: number
  }
}

/** The part of the server's answer to CONSUMER.INFO that is read here. */
export interface ConsumerInfo {
  readonly config: Partial<ConsumerConfig>
  readonly delivered: { readonly stream_seq: number }
  /** All messages up to this sequence of the stream are acknowledged. */
  readonly ack_floor: { readonly stream_seq: number }
  /** Messages without an acknowledgement: in hand, or waiting for a retry. */
  readonly num_ack_pending: number
  /** Messages that were not delivered to a worker yet. */
  readonly num_pending: number
  readonly paused?: boolean
  /** Remaining nanoseconds of the pause. */
  readonly pause_remaining?: number
}

const infoWith = <A>(
  { request }: Door,
  operation: string,
  timeoutMillis: number
): Effect.Effect<A | undefined, Failure> =>
  request<A>(operation, "", timeoutMillis).pipe(
    Effect.catchIf(
      (failure) => [streamNotFound, consumerNotFound].includes(codeOf(failure) ?? 0),
      () => nothing
    )
  )

/** Undefined: the server has no such stream. */
export const streamInfo = (door: Door, stream: string, timeoutMillis: number) =>
  infoWith<StreamInfo>(door, `STREAM.INFO.${stream}`, timeoutMillis)

/** Undefined: the server has no such stream, or the stream no such consumer. */
export const consumerInfo = (
  door: Door,
  stream: string,
  consumer: string,
  timeoutMillis = timeoutMillisMax
) => infoWith<ConsumerInfo>(door, `CONSUMER.INFO.${stream}.${consumer}`, timeoutMillis)

/** Undefined: the server has no such stream. Fails with NatsUnavailable after 5 s. */
export const infoOf = (
  door: Door,
  stream: string
): Effect.Effect<StreamInfo | undefined, NatsUnavailable> =>
  Effect.mapError(streamInfo(door, stream, timeoutMillisMax), unavailable(`state of ${stream}`))

/**
 * Names one run of the server that leads a stream. Another one may have messages that were removed:
 * a killed nats-server 2.15 brings replaced ones back if their subject was removed since.
 */
export const leaderOf = (
  { nc, request }: Pick<Nats["Service"], "nc" | "request">,
  stream: string
) =>
  Effect.map(infoOf({ request }, stream), (info) => {
    const { leader, leader_since: since } = info?.cluster ?? {}
    return since === undefined ? (nc.info?.server_id ?? "") : `${leader} ${since}`
  })

/** Sequence of the last message. Fails where there is no such stream. */
export const lastSeqOf = (door: Door, stream: string): Effect.Effect<number, NatsUnavailable> =>
  Effect.flatMap(infoOf(door, stream), (info) =>
    info === undefined
      ? unavailable(`state of ${stream}`)(new Error("there is no such stream"))
      : Effect.succeed(info.state.last_seq)
  )

/** Subjects that the server names in one response. */
const subjectsAtOnce = 100_000

/** How many messages each subject of a stream has that a filter matches. */
export const countBySubject = Effect.fnUntraced(function* (
  { request }: Door,
  stream: string,
  filter: string
) {
  interface Page {
    readonly state: { readonly subjects?: Readonly<Record<string, number>> | null }
  }
  const counts = new Map<string, number>()
  while (true) {
    const query = JSON.stringify({ subjects_filter: filter, offset: counts.size })
    const { state } = yield* Effect.mapError(
      request<Page>(`STREAM.INFO.${stream}`, query, timeoutMillisMax),
      unavailable(`subjects of ${stream}`)
    )
    const page = Object.entries(state.subjects ?? {})
    for (const [subject, count] of page) counts.set(subject, count)
    if (page.length < subjectsAtOnce) return counts
  }
})

/** The configuration of a declared consumer, as far as an update can change it. */
export const consumerConfig = (spec: ConsumerSpec) =>
  ({
    durable_name: spec.name,
    filter_subjects: [...spec.filters],
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(spec.ackWaitMillis),
    max_deliver: spec.maxDeliver,
    max_ack_pending: spec.maxAckPending
  }) satisfies Partial<ConsumerConfig>
