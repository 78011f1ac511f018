// Parses a message of LOG into a step of the projector. NATS clients can publish any message, so a
// step may also be a rejection with a reason.
import type { AccessTokenCommand } from "#domain/access-token.ts"
import { gatewaySource } from "#domain/broadcast.ts"
import { type DraftCommand, draftOf } from "#domain/draft.ts"
import type { Message } from "#domain/messages/table.ts"
import type { PublisherCommand } from "#domain/publisher.ts"
import type { ChannelBegun, RegistrationCommand } from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import {
  commandKind,
  parseBegun,
  parseBroadcast,
  parseDraft,
  parseErasure,
  parsePublisher,
  parseRegistration,
  parseState,
  parseSubscription,
  parseToken
} from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"

/**
 * A rejected command. The value of its subject takes over its sequence, which the next append must
 * expect.
 */
export interface Refused {
  readonly type: "malformed"
  readonly reason: string
}

export type Step = { readonly stored: Stored } & (
  | {
      readonly kind: "list"
      readonly key: EntryKey<"subscriptions">
      readonly user: UserToken
      /** The hash of the endpoint that a put stores. */
      readonly hash: string | undefined
      readonly command: SubscriptionCommand | Refused
    }
  | {
      readonly kind: "registration"
      readonly key: EntryKey<"registration">
      /** Key of the counts of the channel. */
      readonly channel: EntryKey<"channelRegistrations">
      /** Key that says that the channel exists. */
      readonly begin: EntryKey<"channelBegin">
      readonly place: ChannelToken
      /** Key of the counts of the user. */
      readonly counts: EntryKey<"registrationCounts">
      readonly user: UserToken
      readonly command: RegistrationCommand | Refused
    }
  | {
      readonly kind: "begun"
      /** Key of the counts of the channel. */
      readonly key: EntryKey<"channelRegistrations">
      readonly begin: EntryKey<"channelBegin">
      readonly begun: typeof ChannelBegun.Type
    }
  | {
      readonly kind: "erase"
      readonly key: EntryKey<"subscriptions">
      readonly user: UserToken
      readonly by: string | undefined
    }
  | {
      readonly kind: "publishers"
      readonly key: EntryKey<"publishers">
      readonly command: PublisherCommand | Refused
    }
  | {
      readonly kind: "token"
      readonly key: EntryKey<"token">
      readonly name: string
      readonly command: AccessTokenCommand
    }
  | {
      readonly kind: "draft"
      readonly key: EntryKey<"drafts">
      readonly id: string
      readonly command:
        | DraftCommand
        /** A broadcast ends the draft of which it is this form. */
        | { readonly type: "published"; readonly form: number }
    }
  /** Nothing to do: the planner handles broadcasts, their parts and their states. */
  | { readonly kind: "pass" }
  /** Rejected, and the subject has no value. */
  | { readonly kind: "nowhere"; readonly reason: string }
)

const commandOf = <C extends Message>(
  message: Stored["message"],
  ...prefixes: ReadonlyArray<string>
): C | Refused =>
  message.type === "malformed" || prefixes.some((prefix) => message.type.startsWith(prefix))
    ? (message as C | Refused)
    : { type: "malformed", reason: "type and subject do not fit" }

const nowhere = (stored: Stored, reason: string): Step => ({ kind: "nowhere", stored, reason })

/** The hash in the body names the key, so a body without one has no value. */
const tokenStepOf = (stored: Stored): Step => {
  const name = parseToken(stored.subject)
  if (name === undefined) return nowhere(stored, "the subject names no token")
  const command = commandOf<AccessTokenCommand>(stored.message, "token.")
  return command.type === "malformed"
    ? nowhere(stored, command.reason)
    : { kind: "token", stored, key: keys.token(command.hash), name, command }
}

const begunStepOf = (stored: Stored): Step => {
  const channel = parseBegun(stored.subject)
  const { message } = stored
  if (channel === undefined || message.type !== "channel.begun")
    return nowhere(stored, "no begin of a channel")
  const [key, begin] = [keys.channelRegistrations(channel), keys.channelBegin(channel)]
  return { kind: "begun", stored, key, begin, begun: message }
}

const eraseStepOf = (stored: Stored): Step => {
  const user = parseErasure(stored.subject)
  const { message } = stored
  if (user === undefined || message.type !== "user.erase")
    return nowhere(stored, "no erasure of a user")
  return { kind: "erase", stored, key: keys.subscriptions(user), user, by: message.by }
}

/** The author in the body names the key, so a body without one has no value. */
const draftStepOf = (stored: Stored): Step => {
  const id = parseDraft(stored.subject)
  if (id === undefined) return nowhere(stored, "the subject names no draft")
  const command = commandOf<DraftCommand>(stored.message, "draft.")
  return command.type === "malformed"
    ? nowhere(stored, command.reason)
    : { kind: "draft", stored, key: keys.drafts(command.user), id, command }
}

/** A broadcast is for the planner. One that was a draft ends the draft. */
const broadcastStepOf = (stored: Stored): Step => {
  const isOwn = parseBroadcast(stored.subject)?.source === gatewaySource
  const draft = isOwn ? draftOf(stored.header) : undefined
  if (draft === undefined) return { kind: "pass", stored }
  const { id, seq: form, user } = draft
  return { kind: "draft", stored, key: keys.drafts(user), id, command: { type: "published", form } }
}

export const stepOf = (stored: Stored): Step => {
  const { subject } = stored
  switch (commandKind(subject)) {
    case "broadcast":
      return broadcastStepOf(stored)
    case "draft":
      return draftStepOf(stored)
    case "part":
      return { kind: "pass", stored }
    case "subscription": {
      const user = parseSubscription(subject)
      if (user === undefined) return nowhere(stored, "the subject names no user")
      const command = commandOf<SubscriptionCommand>(stored.message, "subscription.")
      const hash =
        command.type === "subscription.put" ? endpointHash(command.data.endpoint) : undefined
      return { kind: "list", stored, key: keys.subscriptions(user), user, hash, command }
    }
    case "registration": {
      const place = parseRegistration(subject)
      if (place === undefined) return nowhere(stored, "the subject names no channel and user")
      const command = commandOf<RegistrationCommand>(stored.message, "registration.")
      const { channel, user } = place
      return {
        kind: "registration",
        stored,
        key: keys.registration(channel, user),
        channel: keys.channelRegistrations(channel),
        begin: keys.channelBegin(channel),
        place: channel,
        counts: keys.registrationCounts(user),
        user,
        command
      }
    }
    case "publisher": {
      const channel = parsePublisher(subject)
      if (channel === undefined) return nowhere(stored, "the subject names no channel")
      return {
        kind: "publishers",
        stored,
        key: keys.publishers(channel),
        command: commandOf<PublisherCommand>(stored.message, "publisher.", "registrar.")
      }
    }
    case "token":
      return tokenStepOf(stored)
    case "begun":
      return begunStepOf(stored)
    case "erase":
      return eraseStepOf(stored)
    default:
      return parseState(subject) === undefined
        ? nowhere(stored, "there is no such command")
        : { kind: "pass", stored }
  }
}

/**
 * Cuts a batch before the second command of a registration. The value of a registration has one
 * change only, from which the counts are repaired after a crash between the two writes.
 */
export const cut = (steps: ReadonlyArray<Step>): ReadonlyArray<ReadonlyArray<Step>> => {
  const parts: Array<Array<Step>> = [[]]
  let seen = new Set<string>()
  for (const step of steps) {
    if (step.kind === "registration" && seen.has(step.key)) {
      parts.push([])
      seen = new Set()
    }
    if (step.kind === "registration") seen.add(step.key)
    parts.at(-1)!.push(step)
  }
  return parts
}
