// Bodies of messages that record what happened to the service itself: rejections, secrets, looks.
import * as Schema from "effect/Schema"

/**
 * The fact that the projector rejected a command on a subject of subscriptions, registrations or
 * publishers. Rejected broadcasts have a message of their own.
 */
export const CommandRejected = Schema.Struct({
  /** Sequence of the command in LOG. */
  command: Schema.Int,
  subject: Schema.String,
  reason: Schema.String,
  /** Milliseconds since the epoch. */
  at: Schema.Int
})

/**
 * From this message on, browsers were offered this VAPID key. Written once per key, so that a
 * service whose keys were lost reports it at its start.
 */
export const KeyAdopted = Schema.Struct({
  publicKey: Schema.String,
  at: Schema.Int
})
export type KeyAdopted = typeof KeyAdopted.Type

/**
 * From this message on, user ids are made with the secret of this fingerprint, so that a service
 * started with another secret reports it. Empty: with the secret that is adopted next.
 */
export const UseridSecretAdopted = Schema.Struct({
  fingerprint: Schema.String,
  at: Schema.Int
})

/** An operator looked at a user: at the pushes of a broadcast, or at all that is known. */
export const Look = Schema.Struct({
  /** The id of the operator. */
  by: Schema.String,
  broadcast: Schema.optionalKey(Schema.Int),
  at: Schema.Int
})

/** An operator saw what these broadcasts of other publishers say. */
export const LookAtBroadcasts = Schema.Struct({
  /** The id of the operator. */
  by: Schema.String,
  broadcasts: Schema.Array(Schema.Int),
  at: Schema.Int
})
