// Reads who is registered to a channel, the subscriptions of many users, and the channels of one.
import * as Effect from "effect/Effect"
import type { Recipients } from "#domain/recipients.ts"
import { noCounts, registeredSince } from "#domain/registration.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { readParts } from "#nats/kv/entries.ts"
import type { Entry } from "#nats/kv/values.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { parseRegistration } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"

/** Lists read in one request. A typical one has 1 KB. */
const listsAtOnce = 250
/** Channels whose registrations are counted at once. */
const countsAtOnce = 16
/** Registrations of one user that are read or changed at once. */
export const registrationsAtOnce = 16

const digits = [..."0123456789abcdef"]

/**
 * Reads the registrations that wildcards match, those that ended within the last hour, too: with
 * one request; where the server refuses so many, in halves of the wildcards or sixteenths of one.
 */
export const registrationsUnder = (
  buckets: Buckets["Service"],
  filters: ReadonlyArray<EntryKey<"registration">>,
  minRevision: number
) =>
  readParts(buckets, "registrations", filters, minRevision, (filter) =>
    digits.map((digit) => keys.sixteenthOf(filter, digit))
  )

/** Registrations of all these channels together: a user may have several of them. */
export const countRegistrations = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  channels: Recipients["channels"]
) {
  const entries = yield* Effect.forEach(
    channels,
    (channel) => buckets.get("channels", keys.channelRegistrations(channel)),
    { concurrency: countsAtOnce }
  )
  return entries.reduce((sum, entry) => sum + (entry?.value.registrations ?? 0), 0)
})

/** Passes the subscriptions of these users to `each`. A user who never had one has no entry. */
export const eachList = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number,
  each: (entry: Entry<SubscriptionList>) => void
) {
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const some = users.slice(i, i + listsAtOnce)
    for (const entry of yield* readParts(buckets, "subscriptions", some, minRevision)) each(entry)
  }
})

/** The channels that a user is registered to. */
export const registeredChannels = (user: UserToken) =>
  Effect.flatMap(registrationsSince(user), channelsAt)

/** Since which sequences of LOG a user is registered, ascending, as of the newest event. */
export const registrationsSince = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("registrations", keys.registrationCounts(user))
  return registeredSince(entry?.value ?? noCounts, user)
})

/** The channels of registrations that began with these sequences of LOG. */
export const channelsAt = Effect.fnUntraced(function* (began: ReadonlyArray<number>) {
  const channels = yield* Effect.forEach(began, channelAt, { concurrency: registrationsAtOnce })
  return channels.flatMap((channel) => channel ?? [])
})

/** The channel of the registration that a message of LOG began. */
const channelAt = Effect.fnUntraced(function* (since: number) {
  const stored = yield* (yield* EventLog).at("log", since)
  return stored && parseRegistration(stored.subject)?.channel
})
