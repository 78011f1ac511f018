// Judges a durable consumer by what the server says of it: whether somebody paused or changed it,
// and from where it starts when it is made again. Pure.
import { type ConsumerConfig, DeliverPolicy } from "@nats-io/jetstream"
import type { ConsumerSpec } from "#streams/spec.ts"
import { consumerConfig } from "../stream/info.ts"

/**
 * What an update must clear: with these, pulls are refused, messages lack their bodies, delays of
 * naks are wrong, or the server deletes the consumer.
 */
const cleared = {
  backoff: [],
  headers_only: false,
  inactive_threshold: 0,
  max_batch: 0,
  max_bytes: 0,
  max_expires: 0
} satisfies Partial<ConsumerConfig>

/** Where the declared consumers start. The others skip messages. */
const ownStarts: ReadonlyArray<unknown> = [DeliverPolicy.All, DeliverPolicy.StartSequence]

/** The fields that somebody changed, and how they can be changed back. */
export interface Edit {
  readonly fields: ReadonlyArray<string>
  /**
   * What an update must set beside the declaration; undefined: the consumer must be deleted and
   * made again.
   */
  readonly update: Partial<ConsumerConfig> | undefined
}

const filtersOf = ({ filter_subject, filter_subjects = [] }: Partial<ConsumerConfig>) =>
  filter_subject === undefined ? filter_subjects : [filter_subject]

/** Whether an optional field has the value that the server assumes where it is absent. */
const isClear = (value: unknown): boolean =>
  value === undefined || value === 0 || value === false || (Array.isArray(value) && !value.length)

/**
 * The fields with which a consumer loses messages that it has not delivered: it acknowledges by
 * itself, skips what a filter does not match, gives up what was delivered often, or delivers jobs
 * without their bodies, which are refused for good.
 */
const losing = (config: Partial<ConsumerConfig>, spec: ConsumerSpec): ReadonlyArray<string> => {
  const declared = consumerConfig(spec)
  const { deliver_policy: start = DeliverPolicy.All } = config
  const kept = {
    ack_policy: config.ack_policy === declared.ack_policy,
    deliver_policy: ownStarts.includes(start),
    filter_subjects: String(filtersOf(config)) === String(spec.filters),
    headers_only: isClear(config.headers_only),
    max_deliver: config.max_deliver === declared.max_deliver
  }
  return Object.entries(kept).flatMap(([field, isKept]) => (isKept ? [] : field))
}

/** The fields in which NATS may give a consumer less than is declared. */
export type Granted = Pick<Partial<ConsumerConfig>, "max_ack_pending" | "max_batch">

/**
 * What is different from the declaration; undefined: nothing that matters. `granted`: what NATS
 * made of the declaration, by its own limits.
 */
export const editOf = (
  config: Partial<ConsumerConfig>,
  spec: ConsumerSpec,
  granted: Granted = {}
): Edit | undefined => {
  const declared = { ...consumerConfig(spec), ...granted }
  const lost = losing(config, spec)
  const changed = [
    ...(["ack_wait", "max_ack_pending"] as const).filter((name) => config[name] !== declared[name]),
    ...(Object.keys(cleared) as Array<keyof typeof cleared>).filter(
      (name) =>
        !(isClear(config[name]) || lost.includes(name)) &&
        !(name === "max_batch" && config[name] === granted[name])
    )
  ]
  if (lost.length + changed.length === 0) return undefined
  return {
    fields: [...lost, ...changed],
    update: lost.length > 0 ? undefined : cleared
  }
}

/** What NATS made of the declaration, as of a consumer that was made or changed just now. */
export const grantedOf = (
  { max_ack_pending, max_batch = 0 }: Partial<ConsumerConfig>,
  spec: ConsumerSpec
): Granted => ({
  ...(max_ack_pending !== undefined &&
    max_ack_pending !== spec.maxAckPending && { max_ack_pending }),
  ...(max_batch > 0 && { max_batch })
})

/** How far a stream was acknowledged, and which stream that was. */
export interface Acknowledged {
  /** When the stream was created, by the server. */
  readonly stream: string
  /** Everything up to this sequence is acknowledged. */
  readonly seq: number
}

/**
 * The first sequence that a consumer delivers which is made again. All messages from the first on
 * that were not acknowledged come again, with those that were acknowledged out of order and since
 * the last look. Without a look, and in another stream, from the beginning.
 */
export const startAgain = (
  seen: Acknowledged | undefined,
  stream: { readonly created: string; readonly lastSeq: number }
): number =>
  seen === undefined || seen.stream !== stream.created ? 1 : Math.min(seen.seq, stream.lastSeq) + 1
