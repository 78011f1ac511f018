// The types of the declarations of streams, consumers and buckets. src/nats/admin/provision.ts
// makes the server match the declarations.

export interface ConsumerSpec {
  readonly name: string
  readonly filters: ReadonlyArray<string>
  /** JetStream delivers a message again that is not acknowledged for this long. */
  readonly ackWaitMillis: number
  /**
   * -1: no limit. JetStream says nothing when it stops delivering a message, so the message would
   * be lost. A handler ends what cannot succeed with a recorded outcome instead.
   */
  readonly maxDeliver: number
  /**
   * Messages of all workers that are not acknowledged. -1: no limit, because nats-server counts
   * messages that wait for the delay of a nak (getNextMsg).
   */
  readonly maxAckPending: number
}

export interface StreamSpec {
  readonly name: string
  readonly subjects: ReadonlyArray<string>
  readonly maxAgeMillis: number
  readonly maxBytes: number
  readonly maxMessageBytes: number
  /** The server recognises a repeated `Nats-Msg-Id` for this long. */
  readonly duplicateWindowMillis: number
  readonly denyPurge: boolean
  readonly consumers: Readonly<Record<string, ConsumerSpec>>
}

export interface BucketSpec {
  readonly name: string
  readonly maxBytes: number
  readonly maxValueBytes: number
  /** 0: entries never expire. */
  readonly ttlMillis: number
  /** When the bucket is full: true deletes the oldest entries, false refuses new ones. */
  readonly forgets: boolean
}
