// Services that handlers of jobs use, the payload of a broadcast, and the state of a shard.
import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type * as Latch from "effect/Latch"
import type * as Semaphore from "effect/Semaphore"
import type { States } from "#broadcasts/states.ts"
import type { FairSemaphore } from "#clock/fair-semaphore.ts"
import type { BroadcastRef, ShardJob } from "#domain/job.ts"
import type { Recipients } from "#domain/recipients.ts"
import type { AppendConflict, NatsUnavailable } from "#nats/connection/errors.ts"
import type { States } from "#nats/follower/states.ts"
import type { Target } from "../attempt.ts"
import type { Bodies, PublicKeys } from "../push/encrypt.ts"
import type { Send } from "../push/send.ts"
import type { Turns } from "../rate/turns.ts"
import type { Audience } from "../recipients/audience.ts"
import type { PastResults, Record, Recorded } from "./record.ts"

/** Waits until the push with this index, counted within its shard, may begin. */
export type Begin = (index: number) => Effect.Effect<void>

/** Shards and retries share these. */
export interface JobTools {
  readonly send: Send
  readonly record: Record
  readonly publicKeys: PublicKeys
  readonly permits: FairSemaphore<number>
  readonly turns: Turns
  /**
   * Whether the process is shutting down: pushes under way are finished, the rest is left to
   * others.
   */
  readonly draining: () => boolean
  /** The present order for a job: its broadcast may be paused or cancelled. */
  readonly orderOf: States["Service"]["orderOf"]
  readonly runOf: States["Service"]["runOf"]
}

export interface ShardTools extends JobTools {
  readonly batches: (broadcast: number, pushes: number) => Begin
  /** Pushes under way at once. */
  readonly concurrency: number
}

/** The payload in one language. */
export interface Variant {
  /** Undefined: no payload. */
  readonly padded: Buffer | undefined
  /** The language of the variant; absent: that for all others. */
  readonly locale?: string
}

export interface Payload {
  readonly variantOf: (target: Target) => Variant
  readonly to: Recipients
  /** Bytes of memory, about: 5 KB, or 0.2 MB with all variants and recipients. */
  readonly bytes: number
}

/** Reads the payload of a broadcast, and to whom it goes. Undefined: LOG does not have it. */
export type Payloads = (ref: BroadcastRef) => Effect.Effect<Payload | undefined, NatsUnavailable>

/** The outcomes that earlier deliveries of a job recorded. */
export interface Past extends PastResults {
  /** Sequence of the last outcome; 0: none. */
  readonly seq: number
  /** Pushes that the outcomes say the shard holds. */
  readonly declared: number
  /** Nothing is left to send. */
  readonly final: boolean
  /** The worker that wrote the last outcome sends no more. */
  readonly released: boolean
  /** When the server stored the last outcome. */
  readonly at: number
  /** Removals, strikes or retries of these outcomes are not stored yet. */
  readonly isPostponed: boolean
}

/** A shard that this worker has. */
export interface Claimed extends Past {
  /** When the append of the claim began, by the monotonic clock. */
  readonly claimedAt: number
}

/** The state of one delivery of a shard job. */
export interface ShardRun {
  readonly tools: ShardTools
  readonly job: ShardJob
  readonly subject: string
  readonly check: Audience["check"]
  readonly bodies: Bodies
  readonly variantOf: Payload["variantOf"]
  readonly begin: Begin
  /** When the rest of the shard is left to the next delivery, by the monotonic clock. */
  readonly leaveAt: number
  readonly flushing: Semaphore.Semaphore
  readonly results: Array<Recorded & { readonly permit: boolean }>
  /** Open while results wait to be recorded. */
  readonly hasResults: Latch.Latch
  /** Sequence of the last outcome. */
  seq: number
  /** When the append of the last outcome began, by the monotonic clock. */
  provenAt: number
  /** Permits of this shard's pushes. */
  permits: number
  /** Pushes left to the next delivery of the job. */
  left: number
  /** Removals, strikes or retries are not stored: the next delivery of the job stores them. */
  isPostponed: boolean
  /** Set when an outcome cannot be written: nothing more is sent, and later writes fail too. */
  failure: Cause.Cause<AppendConflict | NatsUnavailable> | undefined
}
