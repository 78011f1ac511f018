// What can go wrong at the door to NATS, as far as anyone above can act on it.
import { Schema } from "effect"

/** NATS did not answer in time, or refused for a reason that passes. Nothing is known about an append that ended so. */
export class LogUnavailable extends Schema.TaggedError<LogUnavailable>()("LogUnavailable", {
  operation: Schema.String,
  cause: Schema.Defect(),
  /** The stream that has no room for what was written, when that is why. */
  full: Schema.optionalKey(Schema.String)
}) {}

/** Somebody else wrote to the subject (or key) first. */
export class AppendConflict extends Schema.TaggedError<AppendConflict>()("AppendConflict", {
  subject: Schema.String
}) {}

/** There is something to project, and a bucket for it is gone. `message` says what helps. */
export class BucketsMissing extends Schema.TaggedError<BucketsMissing>()("BucketsMissing", {
  message: Schema.String
}) {}
