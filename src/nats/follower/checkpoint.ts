// The checkpoint of a follower: how far the stored state of its buckets goes.
import * as Effect from "effect/Effect"
import { metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { unavailable } from "../connection/errors.ts"
import type { Buckets } from "../kv/bucket.ts"
import type { Mark } from "../kv/values.ts"

export interface Checkpoint {
  readonly name: FollowerName
  seq: number
  revision: number
  /** Undefined: nothing was applied. */
  mark: Mark | undefined
  /** This run has written it. */
  isWritten: boolean
}

type Kv = Buckets["Service"]

export const readCheckpoint = Effect.fnUntraced(function* (buckets: Kv, name: FollowerName) {
  const meta = yield* buckets.get(followers[name].checkpoint, metaKey)
  const checkpoint: Checkpoint = {
    name,
    seq: meta?.value.seq ?? 0,
    revision: meta?.revision ?? 0,
    mark: meta?.value.mark,
    isWritten: false
  }
  return checkpoint
})

/** The work of a follower since its last checkpoint. */
export interface Progressed {
  /** Sequence of the last message whose changes are stored. */
  readonly stored: number
  readonly mark: Mark | undefined
}

/** Writes the checkpoint once, and if the sequence is higher. */
export const saveCheckpoint = Effect.fnUntraced(
  function* (buckets: Kv, checkpoint: Checkpoint, { mark, stored }: Progressed) {
    if (checkpoint.isWritten && stored <= checkpoint.seq) return
    const seq = Math.max(stored, checkpoint.seq)
    const bucket = followers[checkpoint.name].checkpoint
    const meta = { v: 1, seq, ...(mark === undefined ? {} : { mark }) } as const
    checkpoint.revision = yield* buckets.put(bucket, metaKey, meta, checkpoint.revision)
    Object.assign(checkpoint, { seq, mark, isWritten: true })
  },
  // A full bucket has no room for the checkpoint either. The former one stays valid.
  Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
  Effect.mapError(unavailable("checkpoint"))
)
