// The checkpoint of a follower: how far the stored state of its buckets goes.
import { Effect } from "effect"
import { metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { unavailable } from "../connection/errors.ts"
import type { Buckets } from "../kv/bucket.ts"
import type { Meta } from "../kv/values.ts"

/** What a follower stores beside its checkpoint. */
export type Notes = Pick<Meta, "counted">

export interface Checkpoint {
  readonly name: FollowerName
  seq: number
  revision: number
  notes: Notes
}

type Kv = Buckets["Service"]

export const readCheckpoint = Effect.fnUntraced(function* (buckets: Kv, name: FollowerName) {
  const meta = yield* buckets.get(followers[name].checkpoint, metaKey)
  const checkpoint: Checkpoint = {
    name,
    seq: meta?.value.seq ?? 0,
    revision: meta?.revision ?? 0,
    notes: meta?.value ?? {}
  }
  return checkpoint
})

/** Writes the checkpoint if the sequence is higher or a note is new. */
export const saveCheckpoint = Effect.fnUntraced(
  function* (buckets: Kv, checkpoint: Checkpoint, applied: number, notes: Notes) {
    const isNoted = Object.keys(notes).every((name) => name in checkpoint.notes)
    if (applied <= checkpoint.seq && isNoted) return
    const seq = Math.max(applied, checkpoint.seq)
    const bucket = followers[checkpoint.name].checkpoint
    const meta = { v: 1, seq, ...notes } as const
    checkpoint.revision = yield* buckets.put(bucket, metaKey, meta, checkpoint.revision)
    checkpoint.seq = seq
    checkpoint.notes = notes
  },
  // A full bucket has no room for the checkpoint either. The former one stays valid.
  Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
  Effect.mapError(unavailable("checkpoint"))
)
