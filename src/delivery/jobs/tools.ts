// The services that handlers of jobs use.
import type { States } from "#nats/follower/states.ts"
import type { FairSemaphore } from "../fair-semaphore.ts"
import type { PublicKeys } from "../push/public-keys.ts"
import type { Send } from "../push/send.ts"
import type { Turns } from "../rate/turns.ts"
import type { Begin } from "./push-batches.ts"
import type { Record } from "./record/record.ts"

/** Shards and retries share these. */
export interface JobTools {
  readonly send: Send
  readonly record: Record
  readonly publicKeys: PublicKeys
  readonly permits: FairSemaphore
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
