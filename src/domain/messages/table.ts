// Every message that is stored, one line each: all that is known of a message stands here. Code
// names a message by the name of its line and knows the newest number only; `forms.ts` makes
// that of older ones. The meaning of a number never changes, and neither does its schema.
import { AccessTokenDelete, AccessTokenPut } from "../access-token.ts"
import { BroadcastBody } from "../broadcast.ts"
import {
  BroadcastCancelled,
  BroadcastChanged,
  BroadcastPaused,
  BroadcastRejected,
  BroadcastResumed,
  BroadcastScheduled
} from "../broadcast-state.ts"
import { DraftDelete, DraftPut } from "../draft.ts"
import { UserErase, UserErased } from "../erasure.ts"
import { DeadLetter, RetryJob, ShardJob } from "../job.ts"
import { ChannelSummed, Outcome, Plan } from "../outcome.ts"
import { Progress } from "../progress.ts"
import { PublisherDelete, PublisherPut } from "../publisher.ts"
import { Direct, DirectPart } from "../recipients.ts"
import { ChannelBegun, RegistrationDelete, RegistrationPut } from "../registration.ts"
import {
  SubscriptionCleared,
  SubscriptionDelete,
  SubscriptionGone,
  SubscriptionMatched,
  SubscriptionMoved,
  SubscriptionPut,
  SubscriptionRenewable,
  SubscriptionStruck,
  SubscriptionSuspended,
  SubscriptionTaken
} from "../subscription/command.ts"
import { line } from "./line.ts"
import {
  CommandRejected,
  KeyAdopted,
  Look,
  LookAtBroadcasts,
  UseridSecretAdopted
} from "./records.ts"

/** A change is asked for by a client of the API, or by somebody at a terminal. */
const asks = ["gateway", "cli"] as const
/** Data of a client. */
const ofClient = { isOfClient: true } as const
const list = ["subscriptions"] as const
const place = ["registrations", "channels"] as const
const rights = ["permissions"] as const
const drafts = ["drafts"] as const
/** Of the counts of pushes. Those of a channel are made from a fact when WORK has no more. */
const counts = ["broadcasts", "channels"] as const
/** A command that the projector gave up is passed over: so each of its buckets rests on that. */
const commands = [...list, ...place, ...rights, ...drafts] as const

// Schema, number, writers, use, whether it names a person, and the buckets with entries that rest
// on it; none: no bucket. The words are those of `line.ts`.
export const messages = {
  "subscription.put": line(SubscriptionPut, 1, asks, "state", true, list, ofClient),
  "subscription.delete": line(SubscriptionDelete, 1, ["gateway"], "state", true, list),
  "subscription.gone": line(SubscriptionGone, 1, ["delivery"], "state", true, list),
  "subscription.renewable": line(SubscriptionRenewable, 1, ["gateway"], "state", true, list),
  "subscription.moved": line(SubscriptionMoved, 1, ["projection"], "state", true, list),
  "subscription.taken": line(SubscriptionTaken, 1, ["projection"], "state", true, list),
  "subscription.matched": line(SubscriptionMatched, 1, ["delivery"], "state", true, list),
  "subscription.struck": line(SubscriptionStruck, 1, ["delivery"], "state", true, list),
  "subscription.suspended": line(SubscriptionSuspended, 1, ["delivery"], "state", true, list),
  "subscription.cleared": line(SubscriptionCleared, 1, [...asks, "delivery"], "state", true, list),
  "registration.put": line(RegistrationPut, 1, asks, "state", true, place),
  "registration.delete": line(RegistrationDelete, 1, [...asks, "projection"], "state", true, place),
  "channel.begun": line(ChannelBegun, 1, ["projection"], "state", false, ["channels"]),
  "user.erase": line(UserErase, 1, asks, "work", true, list),
  "user.erased": line(UserErased, 1, ["projection"], "audit", true, []),
  "publisher.put": line(PublisherPut, 1, ["cli"], "state", true, rights),
  "publisher.delete": line(PublisherDelete, 1, ["cli"], "state", true, rights),
  "registrar.put": line(PublisherPut, 1, ["cli"], "state", true, rights),
  "registrar.delete": line(PublisherDelete, 1, ["cli"], "state", true, rights),
  "token.put": line(AccessTokenPut, 1, ["cli"], "state", false, rights),
  "token.delete": line(AccessTokenDelete, 1, ["cli"], "state", false, rights),
  "draft.put": line(DraftPut, 1, ["gateway"], "content", true, drafts, ofClient),
  "draft.delete": line(DraftDelete, 1, asks, "state", true, drafts),
  "key.adopted": line(KeyAdopted, 1, ["start"], "guard", false, []),
  "userid-secret.adopted": line(UseridSecretAdopted, 1, ["start"], "guard", false, []),
  "command.rejected": line(CommandRejected, 1, ["projection"], "audit", true, commands),
  broadcast: line(BroadcastBody, 1, [...asks, "publisher"], "content", true, drafts, ofClient),
  direct: line(Direct, 1, asks, "content", true, drafts, ofClient),
  "direct.part": line(DirectPart, 1, ["gateway"], "content", true, []),
  "broadcast.rejected": line(BroadcastRejected, 1, ["fanout"], "audit", false, []),
  "broadcast.scheduled": line(BroadcastScheduled, 1, ["fanout"], "state", true, []),
  "broadcast.changed": line(BroadcastChanged, 1, asks, "content", true, [], ofClient),
  "broadcast.started": line(BroadcastScheduled, 1, ["fanout"], "state", true, []),
  "broadcast.paused": line(BroadcastPaused, 1, [...asks, "tally"], "state", true, []),
  "broadcast.resumed": line(BroadcastResumed, 1, [...asks, "delivery"], "state", true, []),
  "broadcast.cancelled": line(BroadcastCancelled, 1, asks, "state", true, []),
  "broadcast.finished": line(Progress, 1, ["tally"], "audit", false, counts),
  "channel.summed": line(ChannelSummed, 1, ["projection"], "state", false, ["channels"]),
  plan: line(Plan, 1, ["fanout"], "state", false, counts),
  shard: line(ShardJob, 1, ["fanout", "delivery"], "work", false, []),
  retry: line(RetryJob, 1, ["delivery"], "work", true, []),
  outcome: line(Outcome, 1, ["delivery"], "audit", true, counts),
  dead: line(DeadLetter, 1, ["delivery"], "audit", true, []),
  look: line(Look, 1, ["gateway"], "audit", true, []),
  "look.broadcasts": line(LookAtBroadcasts, 1, ["gateway"], "audit", true, [])
} as const

export type MessageType = keyof typeof messages
export type MessageBody<T extends MessageType> = (typeof messages)[T]["schema"]["Type"]
/** A body of the newest number with the name of its message. */
export type Message<T extends MessageType = MessageType> = T extends MessageType
  ? { readonly type: T } & MessageBody<T>
  : never
