// DELETE / and DELETE /users/{user}: ends the subscriptions and registrations of a user, and has
// the user erased. The projector then deletes what LOG has (projection/erase.ts).
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { nextTimestamp } from "#domain/subscription/subscription.ts"
import { renewables } from "#domain/subscription/tombstone.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { registeredChannels, registrationsAtOnce } from "#subscriptions/audience.ts"
import { Acknowledgement, accepted, endRegistration } from "../channels/registration.ts"
import type { Call } from "../http/request.ts"
import { forUserInPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { changeBytes, isNewcomer, RequestRates } from "../quotas.ts"
import { changed, changeList, unchanged } from "../write.ts"

/** Subscriptions go first: nothing is sent from then on. A repeat completes what an error left. */
export const userDelete = operation({
  access: "caller",
  run: Effect.fnUntraced(function* (_, call) {
    yield* removeSubscriptions(call)
    const channels = yield* registeredChannels(call.user!.user)
    yield* Effect.forEach(channels, (channel) => endRegistration(channel, call), {
      concurrency: registrationsAtOnce,
      discard: true
    })
    yield* erase(call)
    return accepted
  }),
  doc: {
    summary: "Erase the caller: their subscriptions, registrations and all messages of these",
    responses: { 202: Acknowledgement },
    errors: [409, 429, 507]
  }
})

export const namedUserDelete = {
  ...forUserInPath(
    userDelete,
    "Erase a user: their subscriptions, registrations and all messages of these"
  ),
  access: "eraser"
} as const

const removeSubscriptions = (call: Call) =>
  changeList(call, (list, now) => {
    const first = nextTimestamp(list, now)
    const stored = Object.keys(list.subscriptions)
    const removed = [
      ...stored.map((id, i) => ({ id, lastModified: first + i })),
      ...renewables(list.tombstones)
    ]
    const { id: user } = call.user!
    return Effect.succeed(
      removed.length === 0
        ? unchanged(accepted)
        : changed({ type: "subscription.delete", user, removed }, accepted)
    )
  })

/** Whether LOG has a subscription or registration of a user. */
const isKnown = Effect.fnUntraced(function* (user: UserToken) {
  const { last } = yield* EventLog
  const found =
    (yield* last("log", subjects.subscription(user))) ??
    (yield* last("log", filters.registrationsOf(user)))
  return found !== undefined
})

/** Fails with 429 where the caller or the address has stored too much. */
const countErasure = Effect.fnUntraced(function* (call: Call) {
  const { ofChange } = yield* RequestRates
  yield* ofChange({
    user: call.caller!.user,
    address: call.request.address,
    bytes: changeBytes,
    isNewUser: yield* isNewcomer(call, false)
  })
})

/** Asks for an erasure, and waits until the buckets show it. */
const erase = Effect.fnUntraced(function* (call: Call) {
  const [caller, { user }] = [call.caller!, call.user!]
  const isOther = caller.user !== user
  // There may be letters to a user of whom LOG has nothing else. A caller who makes up users must
  // not fill LOG with their erasures, each of which leaves a fact: so these count as changes do.
  if (!isOther && !(yield* isKnown(user))) yield* countErasure(call)
  const at = yield* Clock.currentTimeMillis
  const { seq } = yield* (yield* EventLog).append("log", {
    subject: subjects.erase(user),
    type: "user.erase",
    body: { at, ...(isOther && { by: caller.id }) }
  })
  yield* (yield* Watermark).reached(seq, appliedMillis)
})
