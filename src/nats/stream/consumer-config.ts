// How a declared consumer is configured on the server. Pure.
import { AckPolicy, type ConsumerConfig } from "@nats-io/jetstream"
import { nanos } from "@nats-io/transport-node"
import type { ConsumerSpec } from "#streams/spec.ts"

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
