// All message types, with the schemas of their bodies. The header Bellcast-Type names the type. The
// meaning of a type never changes: new meanings get new types.
import type * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { depthMax, parseJson, parseWhole } from "#basics/json.ts"
import { AccessTokenDelete, AccessTokenPut } from "./access-token.ts"
import { BroadcastBody } from "./broadcast.ts"
import {
  BroadcastCancelled,
  BroadcastChanged,
  BroadcastPaused,
  BroadcastRejected,
  BroadcastResumed,
  BroadcastScheduled
} from "./broadcast-state.ts"
import { DeadLetter, RetryJob, ShardJob } from "./job.ts"
import { Outcome, Plan } from "./outcome.ts"
import { Progress } from "./progress.ts"
import { PublisherDelete, PublisherPut } from "./publisher.ts"
import { Direct, DirectPart } from "./recipients.ts"
import { RegistrationDelete, RegistrationPut } from "./registration.ts"
import {
  SubscriptionCleared,
  SubscriptionDelete,
  SubscriptionGone,
  SubscriptionMatched,
  SubscriptionMoved,
  SubscriptionPut,
  SubscriptionRenewable,
  SubscriptionStruck,
  SubscriptionSuspended
} from "./subscription/command.ts"

/**
 * The fact that the projector rejected a command on a subject of subscriptions, registrations or
 * publishers. Rejected broadcasts have a message of their own.
 */
const CommandRejected = Schema.Struct({
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
const UseridSecretAdopted = Schema.Struct({
  fingerprint: Schema.String,
  at: Schema.Int
})

/** An operator looked at a user: at the pushes of a broadcast, or at all that is known. */
const Look = Schema.Struct({
  /** The id of the operator. */
  by: Schema.String,
  broadcast: Schema.optionalKey(Schema.Int),
  at: Schema.Int
})

export const messages = {
  "subscription.put/1": SubscriptionPut,
  "subscription.delete/1": SubscriptionDelete,
  "subscription.gone/1": SubscriptionGone,
  "subscription.renewable/1": SubscriptionRenewable,
  "subscription.moved/1": SubscriptionMoved,
  "subscription.matched/1": SubscriptionMatched,
  "subscription.struck/1": SubscriptionStruck,
  "subscription.suspended/1": SubscriptionSuspended,
  "subscription.cleared/1": SubscriptionCleared,
  "registration.put/1": RegistrationPut,
  "registration.delete/1": RegistrationDelete,
  "publisher.put/1": PublisherPut,
  "publisher.delete/1": PublisherDelete,
  "registrar.put/1": PublisherPut,
  "registrar.delete/1": PublisherDelete,
  "token.put/1": AccessTokenPut,
  "token.delete/1": AccessTokenDelete,
  "key.adopted/1": KeyAdopted,
  "userid-secret.adopted/1": UseridSecretAdopted,
  "command.rejected/1": CommandRejected,
  "broadcast/1": BroadcastBody,
  "direct/1": Direct,
  "direct.part/1": DirectPart,
  "broadcast.rejected/1": BroadcastRejected,
  "broadcast.scheduled/1": BroadcastScheduled,
  "broadcast.changed/1": BroadcastChanged,
  "broadcast.started/1": BroadcastScheduled,
  "broadcast.paused/1": BroadcastPaused,
  "broadcast.resumed/1": BroadcastResumed,
  "broadcast.cancelled/1": BroadcastCancelled,
  "broadcast.finished/1": Progress,
  "plan/1": Plan,
  "shard/1": ShardJob,
  "retry/1": RetryJob,
  "outcome/1": Outcome,
  "dead/1": DeadLetter,
  "look/1": Look
} as const

export type MessageType = keyof typeof messages
export type MessageBody<T extends MessageType> = (typeof messages)[T]["Type"]
/** A body with the type that names it. */
export type Message<T extends MessageType = MessageType> = T extends MessageType
  ? { readonly type: T } & MessageBody<T>
  : never

/** Types with data of a client, which is stored and handed on as it came. */
const ofClients: ReadonlySet<MessageType> = new Set([
  "subscription.put/1",
  "broadcast/1",
  "direct/1",
  "broadcast.changed/1"
])

/**
 * Returns the message of a type and a JSON text, or "malformed" with the reason: an unknown type,
 * not JSON, nested too deep, data that would be changed, or a body that does not match the schema.
 */
export const decodeMessage = (
  type: string,
  text: string
): Message | { readonly type: "malformed"; readonly reason: string } => {
  const malformed = (reason: string) => ({ type: "malformed", reason }) as const
  if (!isType(type)) return malformed(`unknown type ${JSON.stringify(type.slice(0, 64))}`)
  const parsed = (ofClients.has(type) ? parseWhole : parseJson)(text)
  if (parsed === "malformed") return malformed("not JSON")
  if (parsed === "deep") return malformed(`nested more than ${depthMax} levels deep`)
  if ("loss" in parsed) return malformed(parsed.loss)
  const exit = decoders[type](parsed.json)
  return exit._tag === "Success" ? ({ ...exit.value, type } as Message) : malformed(`not a ${type}`)
}

const decoders = Object.fromEntries(
  Object.entries(messages).map(([type, schema]) => [
    type,
    Schema.decodeUnknownExit(schema as unknown as Schema.ConstraintCodec<unknown, unknown>)
  ])
) as unknown as {
  readonly [T in MessageType]: (json: unknown) => Exit.Exit<MessageBody<T>, Schema.SchemaError>
}

const isType = (type: string): type is MessageType => Object.hasOwn(messages, type)
