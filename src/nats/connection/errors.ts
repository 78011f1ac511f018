// The errors of src/nats/, in the detail that callers act on.

import { JetStreamApiError } from "@nats-io/jetstream"
import type { Msg } from "@nats-io/transport-node"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
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
  Schema.TaggedStruct("NoLease", {}),
  /** Only a later version of the service reads a message. */
  Schema.TaggedStruct("LaterVersion", {})
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
}) {
  /** The cause says more. */
  override get message(): string {
    return inWords[this.reason._tag]
  }
}

const inWords: Readonly<Record<(typeof Reason.Type)["_tag"], string>> = {
  NotConnected: "NATS cannot be reached",
  NotReady: "NATS has no leader yet",
  RequestFailed: "NATS did not respond in time, or refused",
  NoRoom: "a stream has no room",
  NotApplied: "the projection did not apply a message in time",
  NoLease: "another process has the lease, or may have it soon",
  LaterVersion: "only a later version reads a message"
}

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

/** There was no response in time, no server or no connection: the server may have obeyed. */
export class Unanswered extends Data.TaggedError("Unanswered")<{ readonly message: string }> {}

export type Failure = JetStreamApiError | Unanswered

type Refusal = ConstructorParameters<typeof JetStreamApiError>[0]

const noResponders = 503
const notFound = 404
/** A server that starts responds so for a moment. The request may succeed later. */
const notEnabled = 10039
const messageNotFound = 10037

export const streamNotFound = 10059
/** A stream of this name exists with another configuration. */
export const streamNameInUse = 10058
export const consumerNotFound = 10014
/** A consumer of this name exists with another configuration. */
export const consumerExists = 10148

/** The server or the account allows a consumer fewer messages without an acknowledgement. */
export const ackPendingExceeds = 10121

/** Another message than the expected one is the last on the subject. */
export const wrongLastSequence = 10071
/**
 * In replicated streams: another write on the subject is in flight, possibly our own previous one.
 * Not a conflict yet.
 */
export const wrongLastSequenceInFlight = 10164

/** The message asks for a rollup that the stream does not allow, or that does not exist. */
export const rollupFailed = 10111

/** The server's error code; undefined: there was no response. */
export const codeOf = (failure: Failure): number | undefined =>
  failure instanceof JetStreamApiError ? failure.code : undefined

/** Succeeds with undefined: what was asked for is not there. */
export const nothing: Effect.Effect<undefined> = Effect.as(Effect.void, undefined)

/** The server has no such stream, consumer or message. */
export const isNotFound = (failure: unknown): boolean =>
  failure instanceof JetStreamApiError && failure.status === notFound

/** The stream is there and has no such message. Where the stream is gone, nothing is known. */
export const isMessageNotFound = (failure: unknown): boolean =>
  failure instanceof JetStreamApiError && failure.code === messageNotFound

/** Why nothing was deleted: the stream does not have the sequence, or not any more. */
const sequenceNotFound = 10043
const deleteFailed = 10057

/** Whether a message was not deleted because it does not exist. */
export const isMessageMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError &&
  (error.code === sequenceNotFound ||
    (error.code === deleteFailed && /not found|no message found/i.test(error.message)))

/** Limits of the account or the server on what is stored. */
const limits = [10002, 10023, 10028, 10047]
/** The stream could not store the message. The description says why. */
const storeFailed = 10077

const isNoRoom = (failure: Failure): boolean => {
  const code = codeOf(failure) ?? 0
  return (
    limits.includes(code) ||
    (code === storeFailed && /maximum (bytes|messages)|no space/i.test(failure.message))
  )
}

/** The error of a message that `stream` did not store. */
export const notStored = (operation: string, stream: string, cause: Failure): NatsUnavailable =>
  new NatsUnavailable({
    operation,
    reason: isNoRoom(cause) ? { _tag: "NoRoom", stream } : { _tag: "RequestFailed" },
    cause
  })

/** Made once: its stack trace would cost as much as the rest of the request. */
const noMessage = new JetStreamApiError({
  code: notFound,
  err_code: messageNotFound,
  description: "no message found"
})

const unanswered = (message: string) => Result.fail(new Unanswered({ message }))

/** The JSON of a response, or the error that the response reports. */
export const parseResponse = <A>(msg: Msg): Result.Result<A, Failure> => {
  if (msg.data.length === 0 && msg.headers?.code === noResponders)
    return unanswered("JetStream does not answer")
  try {
    const response = msg.json<A & { readonly error?: Refusal }>()
    const { error } = response
    if (error === undefined) return Result.succeed(response)
    if (error.err_code === notEnabled) return unanswered(error.description)
    return Result.fail(
      error.err_code === messageNotFound ? noMessage : new JetStreamApiError(error)
    )
  } catch (cause) {
    return unanswered(String(cause))
  }
}
