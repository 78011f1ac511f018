// Ends the registration of one user, whom an operator names.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { byHeaders } from "#domain/broadcast-publisher.ts"
import { policyOf } from "#domain/publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { untilApplied } from "../nats/applied.ts"
import { failed } from "../terminal/output.ts"
import { pseudonymOf } from "./principal.ts"

/** The pseudonym of a user to be removed. Fails for a principal that is no single user. */
export const userToRemove = Effect.fnUntraced(function* (principal: string) {
  if (principal.startsWith("group:") || policyOf(principal) === undefined)
    return yield* failed(
      "--remove takes a user, not a group: who is registered has no group stored"
    )
  return yield* pseudonymOf(principal)
})

/**
 * Removes the registration of a user on a channel. Fails if the user writes at the same time.
 * Returns whether there was one.
 */
export const removeRegistration = Effect.fnUntraced(function* (channel: string, id: string) {
  const user = yield* userToRemove(id)
  const place = channelToken(channel)
  const subject = subjects.registration(place, user)
  const log = yield* EventLog
  const last = yield* log.last("log", subject)
  if (last?.message.type !== "registration.put/1") return false
  const body = { user: id, at: yield* Clock.currentTimeMillis }
  const headers = byHeaders("operator")
  const message = {
    subject,
    type: "registration.delete/1",
    body,
    expect: last.seq,
    headers
  } as const
  const { seq } = yield* log.append("log", message)
  yield* untilApplied("registrations", keys.registration(place, user), seq)
  return true
})
