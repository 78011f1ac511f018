// The errors of src/nats/, in the detail that callers act on.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Reason = Schema.Union([
  /** No connection to a usable server could be opened. */
  Schema.TaggedStruct("NotConnected", {}),
  /** NATS had no leader for what a start needs, for as long as the start waits. */
  Schema.TaggedStruct("NotReady", {}),
  /** A request had no response in time, or the server refused it. */
  Schema.TaggedStruct("RequestFailed", {}),
  /** The stream has no room for the message. */
  Schema.TaggedStruct("NoRoom", { stream: Schema.String }),
  /** The projector did not apply a message of LOG in time. */
  Schema.TaggedStruct("NotApplied", { seq: Schema.Int }),
  /** Another process holds the lease of a follower, or may hold it soon. */
  Schema.TaggedStruct("NoLease", {})
])

/**
 * NATS cannot do now what `operation` names; later it may. After a failed append, the message may
 * be stored.
 */
export class NatsUnavailable extends Schema.TaggedError<NatsUnavailable>()("NatsUnavailable", {
  /** What was tried, for the log. */
  operation: Schema.String,
  reason: Reason,
  cause: Schema.Defect()
}) {}

/** Makes the error of a request that failed for a cause that no caller acts on. */
export const unavailable =
  (operation: string) =>
  (cause: unknown): NatsUnavailable =>
    new NatsUnavailable({ operation, reason: { _tag: "RequestFailed" }, cause })

/** Runs a call of the client of NATS. Fails as {@link unavailable}. */
export const attempt = <A>(
  operation: string,
  run: () => Promise<A>
): Effect.Effect<A, NatsUnavailable> =>
  Effect.tryPromise({ try: run, catch: unavailable(operation) })

/** Another writer wrote to the subject or key first. */
export class AppendConflict extends Schema.TaggedError<AppendConflict>()("AppendConflict", {
  subject: Schema.String
}) {}

/** JetStream has less storage than the streams and buckets need. `message` says what to do. */
export class NoStorage extends Schema.TaggedError<NoStorage>()("NoStorage", {
  message: Schema.String
}) {}

/**
 * A start or a verb must not go on with the streams and buckets as they are: a bucket is gone, they
 * are stored in another form, are copies of different moments, or have more copies than the
 * settings say. `message` says which, and what to do.
 */
export class StartRefused extends Schema.TaggedError<StartRefused>()("StartRefused", {
  message: Schema.String
}) {}
