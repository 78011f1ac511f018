// What is recorded of a command that was rejected. Pure.
import { Schema } from "effect"

/**
 * The fact that the projector rejected a command on a subject of subscriptions, registrations or
 * publishers. Rejected broadcasts have a message of their own.
 */
export const CommandRejected = Schema.Struct({
  /** Sequence of the command in LOG. */
  command: Schema.Int,
  subject: Schema.String,
  reason: Schema.String,
  at: Schema.Int
})
