// Ends the registrations of a stand-in whose subscription a real user took. The gateway registered
// that user before it stored the move.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { MessageType } from "#domain/messages/messages.ts"
import { noCounts, registeredSince } from "#domain/registration.ts"
import type { Append } from "#nats/stream/append.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Sets } from "./sets.ts"

/** Appends a message to LOG. False: another one came first, or LOG has no room. */
export const tryAppend = <T extends MessageType>({ log }: Sets, message: Append<T>) =>
  log.append("log", message).pipe(
    Effect.as(true),
    Effect.catchTag("AppendConflict", () => Effect.succeed(false)),
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.succeed(false))
  )

/**
 * Ends all registrations of a user. False: LOG has no room for that. Safe to repeat: the end of a
 * registration that ended changes nothing.
 */
export const endRegistrations = Effect.fnUntraced(function* (sets: Sets, user: UserToken) {
  const { counts, log } = sets
  const key = keys.registrationCounts(user)
  yield* counts.load([key])
  const at = yield* Clock.currentTimeMillis
  for (const since of registeredSince(counts.get(key) ?? noCounts, user)) {
    const began = yield* log.at("log", since)
    if (began?.message.type !== "registration.put/1") continue
    const { message, subject } = began
    const body = { user: message.user, at }
    if (!(yield* tryAppend(sets, { subject, type: "registration.delete/1", body }))) return false
  }
  return true
})
