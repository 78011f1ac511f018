// How far the buckets must be for whoever reads them on behalf of a broadcast. Pure.
import { Schema } from "effect"

/** Revisions of the buckets at which everything appended up to some point of LOG is visible. */
export const MinimumRevisions = Schema.Struct({
  subscriptions: Schema.Int,
  registrations: Schema.Int
})
export type MinimumRevisions = typeof MinimumRevisions.Type
