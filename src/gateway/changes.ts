// The two kinds of writes of requests: a user's subscriptions, and a registration in a channel.
import * as Effect from "effect/Effect"
import {
  evolveRegistration,
  type Registration,
  type RegistrationCommand
} from "#domain/registration.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { growsList } from "#domain/subscription/list-bounds.ts"
import { withoutMoved } from "#domain/subscription/owners.ts"
import { emptyList, evolveList, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { Decision } from "./decision.ts"
import type { Refused } from "./http/request.ts"
import { change, valueAt, type Writer } from "./write.ts"

/** A user's subscriptions, as the leader of the bucket has them. */
export const listOf = (user: UserToken) =>
  Effect.map(valueAt("subscriptions", keys.subscriptions(user)), (list) =>
    withoutMoved(list ?? emptyList)
  )

/** Changes a user's subscriptions. */
export const changeList = <E = never, R = never>(
  writer: Writer,
  decide: (
    list: SubscriptionList,
    now: number
  ) => Effect.Effect<Decision<SubscriptionList, SubscriptionCommand>, E | Refused, R>
) => {
  const { user } = writer.user!
  const key = keys.subscriptions(user)
  return change<SubscriptionList, SubscriptionCommand, E | Refused, R>(
    {
      places: [{ bucket: "subscriptions", key }],
      growthOf: (list, command) =>
        command.type === "subscription.put/1" && growsList(list, command)
          ? "subscription"
          : "renewal",
      subject: subjects.subscription(user),
      seqOf: ({ seq }) => seq,
      lags: false,
      read: listOf(user),
      evolve: evolveList,
      refusal: "held-by-another"
    },
    writer,
    decide
  )
}

/** Changes a user's registration in a channel. */
export const changeRegistration = <E, R>(
  channel: ChannelToken,
  writer: Writer,
  decide: (
    registration: Registration | undefined,
    now: number
  ) => Effect.Effect<Decision<Registration | undefined, RegistrationCommand>, E, R>
) => {
  const { user } = writer.user!
  const key = keys.registration(channel, user)
  return change<Registration | undefined, RegistrationCommand, E, R>(
    {
      places: [
        { bucket: "registrations", key },
        { bucket: "channels", key: keys.channelRegistrations(channel) },
        { bucket: "registrations", key: keys.registrationCounts(user) }
      ],
      growthOf: () => "registration",
      subject: subjects.registration(channel, user),
      seqOf: (registration) => registration?.seq ?? 0,
      lags: true,
      read: valueAt("registrations", key),
      evolve: evolveRegistration,
      refusal: "too-many-registrations"
    },
    writer,
    decide
  )
}
