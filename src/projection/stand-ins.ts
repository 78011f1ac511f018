// Ends the registrations of a stand-in whose subscription a real user took. The gateway registered
// that user before it stored the move.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { MessageType } from "#domain/messages.ts"
import { noCounts, registeredSince } from "#domain/registration.ts"
import type { Append } from "#nats/stream/append.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import { registrationsAtOnce } from "#subscriptions/audience.ts"
import type { Sets } from "./sets.ts"

/** Appends a message to LOG. False: another one came first, or LOG has no room. */
export const tryAppend = <T extends MessageType>({ log }: Sets, message: Append<T>) =>
  log.append("log", message).pipe(
    Effect.as(true),
    Effect.catchTag("AppendConflict", () => Effect.succeed(false)),
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.succeed(false))
  )

/** Registrations that end in one call: the projector applies nothing else meanwhile. */
const endedMax = 300

/** Ends the registration that began at a sequence of LOG. False: LOG has no room for that. */
const endRegistration = Effect.fnUntraced(function* (sets: Sets, since: number) {
  const began = yield* sets.log.at("log", since)
  if (began?.message.type !== "registration.put/1") return true
  const { message, subject } = began
  const body = { user: message.user, at: yield* Clock.currentTimeMillis }
  return yield* tryAppend(sets, { subject, type: "registration.delete/1", body })
})

/**
 * Ends registrations of a user, of many only some: the next call goes on. False: others are left,
 * or LOG has no room. Safe to repeat: the end of a registration that ended changes nothing.
 */
export const endRegistrations = Effect.fnUntraced(function* (sets: Sets, user: UserToken) {
  const { counts, isLive, standIns } = sets
  const key = keys.registrationCounts(user)
  yield* counts.load([key])
  const done = standIns.get(user) ?? 0
  const left = registeredSince(counts.get(key) ?? noCounts, user).filter((each) => each > done)
  const some = left.slice(0, isLive ? endedMax : undefined)
  const areEnded = yield* Effect.forEach(some, (each) => endRegistration(sets, each), {
    concurrency: registrationsAtOnce
  })
  if (areEnded.includes(false)) return false
  standIns.set(user, some.at(-1) ?? done)
  return some.length === left.length
})
