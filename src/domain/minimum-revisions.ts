// Minimum revisions of the buckets that a reader needs for a broadcast. Pure.
import { Schema } from "effect"

/** Revisions of the buckets that show everything appended up to some sequence of LOG. */
export const MinimumRevisions = Schema.Struct({
  subscriptions: Schema.Int,
  registrations: Schema.Int
})
export type MinimumRevisions = typeof MinimumRevisions.Type
