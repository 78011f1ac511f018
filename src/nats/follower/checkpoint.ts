// The checkpoint of a follower: how far the stored state of its buckets goes.
import { Effect } from "effect"
import { metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { unavailable } from "../connection/errors.ts"
import type { Mark } from "../copies/marks.ts"
import type { Buckets } from "../kv/bucket.ts"
import type { Meta } from "../kv/values.ts"

/** The data that a follower stores beside its checkpoint. */
export type Notes = Pick<Meta, "counted" | "tokens">

export interface Checkpoint {
  readonly name: FollowerName
  seq: number
  revision: number
  notes: Notes
  /** Undefined: nothing was applied, or an earlier version stored the checkpoint. */
  mark: Mark | undefined
  /** This run has written it. Version 0.1.0 writes one that expires with the bucket's entries. */
  isWritten: boolean
}

type Kv = Buckets["Service"]

export const readCheckpoint = Effect.fnUntraced(function* (buckets: Kv, name: FollowerName) {
  const meta = yield* buckets.get(followers[name].checkpoint, metaKey)
  const checkpoint: Checkpoint = {
    name,
    seq: meta?.value.seq ?? 0,
    revision: meta?.revision ?? 0,
    notes: meta?.value ?? {},
    mark: meta?.value.mark,
    isWritten: false
  }
  return checkpoint
})

/** The work of a follower since its last checkpoint. */
export interface Progressed {
  /** Sequence of the last message whose changes are stored. */
  readonly stored: number
  readonly notes: Notes
  readonly mark: Mark | undefined
}

/** Writes the checkpoint once, and if the sequence is higher or a note or the mark is new. */
export const saveCheckpoint = Effect.fnUntraced(
  function* (buckets: Kv, checkpoint: Checkpoint, { mark, notes, stored }: Progressed) {
    const isNoted = Object.keys(notes).every((name) => name in checkpoint.notes)
    const isMarked = mark === undefined || checkpoint.mark !== undefined
    if (checkpoint.isWritten && stored <= checkpoint.seq && isNoted && isMarked) return
    const seq = Math.max(stored, checkpoint.seq)
    const bucket = followers[checkpoint.name].checkpoint
    const meta = { v: 1, seq, ...notes, ...(mark === undefined ? {} : { mark }) } as const
    checkpoint.revision = yield* buckets.put(bucket, metaKey, meta, checkpoint.revision)
    Object.assign(checkpoint, { seq, notes, mark, isWritten: true })
  },
  // A full bucket has no room for the checkpoint either. The former one stays valid.
  Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
  Effect.mapError(unavailable("checkpoint"))
)
