// The registrations of a user, and their channels.
import * as Effect from "effect/Effect"
import { noCounts, registeredSince } from "#domain/registration.ts"
import { keys } from "#streams/buckets.ts"
import { parseRegistration } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { EventLog } from "../stream/event-log.ts"
import { Buckets } from "./bucket.ts"

/** Registrations of one user that are read or changed at once. */
export const registrationsAtOnce = 16

/** Since which sequences of LOG a user is registered, ascending, as of the newest event. */
export const registrationsSince = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("registrations", keys.registrationCounts(user))
  return registeredSince(entry?.value ?? noCounts, user)
})

/** The channel of the registration that a message of LOG began. */
const channelAt = Effect.fnUntraced(function* (since: number) {
  const stored = yield* (yield* EventLog).at("log", since)
  return stored && parseRegistration(stored.subject)?.channel
})

/** The channels of registrations that began with these sequences of LOG. */
export const channelsAt = Effect.fnUntraced(function* (began: ReadonlyArray<number>) {
  const channels = yield* Effect.forEach(began, channelAt, { concurrency: registrationsAtOnce })
  return channels.flatMap((channel) => channel ?? [])
})

/** The channels that a user is registered to. */
export const registeredChannels = (user: UserToken) =>
  Effect.flatMap(registrationsSince(user), channelsAt)
