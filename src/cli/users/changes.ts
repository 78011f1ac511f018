// Changes of a user that the pushes do not show. By operators and sites' servers: subscriptions
// that they gave back or removed, suspensions that they ended, registrations that they began or
// ended. And subscriptions that moved to another user, or were renewed without a login.
import * as Effect from "effect/Effect"
import { callerIn } from "#domain/broadcast-publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, parseRegistration, subjects } from "#streams/subjects.ts"
import { decodeToken, type UserToken } from "#streams/tokens.ts"

interface UserChange {
  readonly change:
    | "restored"
    | "removed"
    | "suspension ended"
    | "registered"
    | "unregistered"
    | "moved away"
    | "renewed"
  /** When NATS stored it: milliseconds since the epoch. */
  readonly at: number
  /** The id of the operator or of the site's server, or `operator` for a command. */
  readonly by?: string
  readonly subscription?: string
  readonly channel?: string
}

const changesIn = ({ at, header, message, subject }: Stored): ReadonlyArray<UserChange> => {
  if (message.type === "subscription.moved/1")
    return message.moved.map(({ id }) => ({ change: "moved away", at, subscription: id }))
  const by = callerIn(header)
  if (by === undefined) {
    const isRenewal = message.type === "subscription.put/1" && message.replaces?.renewal
    return isRenewal ? [{ change: "renewed", at, subscription: message.id }] : []
  }
  const of = { at, by }
  switch (message.type) {
    case "subscription.put/1":
      return [{ change: "restored", ...of, subscription: message.id }]
    case "subscription.delete/1":
      return message.removed.map(({ id }) => ({ change: "removed", ...of, subscription: id }))
    case "subscription.cleared/1":
      return [{ change: "suspension ended", ...of, subscription: message.id }]
    case "registration.put/1":
    case "registration.delete/1": {
      const place = parseRegistration(subject)
      const channel = place && decodeToken(place.channel)
      const change = message.type === "registration.put/1" ? "registered" : "unregistered"
      return [{ change, ...of, ...(channel !== undefined && { channel }) }]
    }
  }
  return []
}

/** All of them between two times (milliseconds since the epoch), the oldest first. */
export const changesOf = Effect.fnUntraced(function* (
  user: UserToken,
  since: number,
  before: number
) {
  const changes: Array<UserChange> = []
  const each = (stored: Stored) => {
    if (stored.at >= since && stored.at < before) changes.push(...changesIn(stored))
  }
  const wanted = [subjects.subscription(user), filters.registrationsOf(user)]
  yield* (yield* EventLog).scan("log", wanted, each)
  return changes.sort((a, b) => a.at - b.at)
})

export const shownChanges = {
  heading: ["CHANGE", "AT", "BY", "SUBSCRIPTION", "CHANNEL"],
  cellsOf: ({ at, by, change, channel, subscription }: UserChange) => [
    ...[change, new Date(at).toISOString(), by, subscription?.slice(0, 12), channel]
  ],
  none: ""
}
