// Changes of a user by operators: subscriptions that they gave back, suspensions that they ended,
// and registrations that they removed.
import * as Effect from "effect/Effect"
import { operatorIn } from "#domain/broadcast-publisher.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, parseRegistration, subjects } from "#streams/subjects.ts"
import { decodeToken, type UserToken } from "#streams/tokens.ts"

interface ByOperator {
  readonly change: "restored" | "suspension ended" | "unregistered"
  /** When NATS stored it: milliseconds since the epoch. */
  readonly at: number
  /** The id of the operator, or `operator` for a command. */
  readonly by: string
  readonly subscription?: string
  readonly channel?: string
}

const changeOf = ({ at, header, message, subject }: Stored): ByOperator | undefined => {
  const by = operatorIn(header)
  if (by === undefined) return undefined
  switch (message.type) {
    case "subscription.put/1":
      return { change: "restored", at, by, subscription: message.id }
    case "subscription.cleared/1":
      return { change: "suspension ended", at, by, subscription: message.id }
    case "registration.delete/1": {
      const place = parseRegistration(subject)
      const channel = place && decodeToken(place.channel)
      return { change: "unregistered", at, by, ...(channel !== undefined && { channel }) }
    }
  }
  return undefined
}

/** All of them between two times (milliseconds since the epoch), the oldest first. */
export const changesByOperators = Effect.fnUntraced(function* (
  user: UserToken,
  since: number,
  before: number
) {
  const changes: Array<ByOperator> = []
  const each = (stored: Stored) => {
    const change = changeOf(stored)
    if (change !== undefined && stored.at >= since && stored.at < before) changes.push(change)
  }
  const wanted = [subjects.subscription(user), filters.registrationsOf(user)]
  yield* (yield* EventLog).scan("log", wanted, each)
  return changes.sort((a, b) => a.at - b.at)
})

export const shownChanges = {
  heading: ["BY OPERATORS", "AT", "BY", "SUBSCRIPTION", "CHANNEL"],
  cellsOf: ({ at, by, change, channel, subscription }: ByOperator) => [
    ...[change, new Date(at).toISOString(), by, subscription?.slice(0, 12), channel]
  ],
  none: ""
}
