// The shapes in which streams, consumers and buckets are declared. src/nats/admin/provision.ts makes the server match them.

export interface ConsumerSpec {
  readonly name: string
  readonly filters: ReadonlyArray<string>
  /** How long a message may stay unanswered before JetStream delivers it again. */
  readonly ackWaitMillis: number
  /** -1, without end: a message that JetStream stops delivering is lost without a word. Whatever can fail for good ends by a recorded outcome. */
  readonly maxDeliver: number
  /** Unanswered messages over all workers; -1: no bound, because delayed naks count here (nats-server, getNextMsg). */
  readonly maxAckPending: number
}

export interface StreamSpec {
  readonly name: string
  readonly subjects: ReadonlyArray<string>
  readonly maxAgeMillis: number
  readonly maxBytes: number
  readonly maxMessageBytes: number
  /** Repeated `Nats-Msg-Id`s are recognised for this long. */
  readonly duplicateWindowMillis: number
  readonly denyPurge: boolean
  readonly consumers: Readonly<Record<string, ConsumerSpec>>
}

export interface BucketSpec {
  readonly name: string
  readonly maxBytes: number
  readonly maxValueBytes: number
  /** 0: entries stay. */
  readonly ttlMillis: number
  /** Full, it forgets its oldest entries. Else it refuses new ones. */
  readonly forgets: boolean
}
