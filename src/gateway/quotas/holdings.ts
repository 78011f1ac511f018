// The registrations of a user, their number for quotas, and the limit of new users.
import * as Effect from "effect/Effect"
import { noCounts, registeredSince } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { parseRegistration } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { RequestRates } from "./requests.ts"

/** Since which sequences of LOG a user is registered, ascending, as of the newest event. */
export const registrationsSince = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("registrations", keys.registrationCounts(user))
  return registeredSince(entry?.value ?? noCounts, user)
})

/** The channel of the registration that a message of LOG began. */
export const channelAt = Effect.fnUntraced(function* (since: number) {
  const stored = yield* (yield* EventLog).at("log", since)
  return stored && parseRegistration(stored.subject)?.channel
})

/** Channels that are read at once. */
export const readsAtOnce = 16

/** The channels that a user is registered to. */
export const channelsOf = Effect.fnUntraced(function* (user: UserToken) {
  const began = yield* registrationsSince(user)
  const channels = yield* Effect.forEach(began, channelAt, { concurrency: readsAtOnce })
  return channels.flatMap((channel) => channel ?? [])
})

/** The number of a user's registrations. */
export const registrationsOf = (user: UserToken) =>
  Effect.map(registrationsSince(user), (held) => held.length)

/** Rejects the first write of a new user when their address has brought too many. */
export const admitNewcomer = Effect.fnUntraced(function* (call: Pick<Call, "request" | "caller">) {
  const { ofNewUser } = yield* RequestRates
  const { user, verified } = call.caller!
  if (ofNewUser === undefined || verified === true) return
  const [list, registrations] = yield* Effect.all(
    [(yield* Buckets).get("subscriptions", keys.subscriptions(user)), registrationsOf(user)],
    { concurrency: "unbounded" }
  )
  if (list === undefined && registrations === 0) yield* ofNewUser(call.request.address)
})
