// PUT and DELETE /channels/{id}/registration: a user's place in a channel. Both respond 202 after
// the change is visible.

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Settings } from "#config"
import { emptyChannel } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { type ChannelToken, channelToken } from "#streams/tokens.ts"
import { changeRegistration } from "../changes.ts"
import { changed, unchanged } from "../decision.ts"
import { refuse } from "../http/errors.ts"
import { type Call, ok } from "../http/request.ts"
import { operation } from "../operation.ts"
import { registrationsOf } from "../quotas/holdings.ts"
import { channelIdOf, mayRegister } from "../rights.ts"

export const Acknowledgement = Schema.Struct({
  code: Schema.Literal(202),
  message: Schema.Literal("Accepted")
}).annotate({ identifier: "Acknowledgement" })
export const accepted = ok({ code: 202, message: "Accepted" }, {}, 202)

/** Whether a registration begins the channel. */
const isNewChannel = Effect.fnUntraced(function* (channel: ChannelToken) {
  const entry = yield* (yield* Buckets).get("channels", keys.channelRegistrations(channel))
  return (entry?.value ?? emptyChannel).registrations === 0
})

/**
 * Registers the user of a request. `isAllowed` is asked for each decision: a removal that comes
 * before the registration is stored may have taken the right, too.
 */
const registerIf = (isAllowed: typeof mayRegister) =>
  Effect.fnUntraced(function* (_: unknown, call: Call) {
    const id = yield* channelIdOf(call.params)
    const channel = channelToken(id)
    const { id: name, user } = call.user!
    const { registrationsPerUserMax: registrationsMax } = yield* Settings
    return yield* changeRegistration(
      channel,
      call,
      Effect.fnUntraced(function* (registration, now) {
        if (!(yield* isAllowed(call.caller!, id))) return yield* refuse("forbidden")
        if (registration?.on) return unchanged(accepted)
        const [count, isNew] = yield* Effect.all([registrationsOf(user), isNewChannel(channel)], {
          concurrency: 2
        })
        if (count >= registrationsMax) return yield* refuse("too-many-registrations")
        const command = {
          type: "registration.put/1",
          user: name,
          at: now,
          registrationsMax
        } as const
        return changed(command, accepted, { growth: isNew ? "channel" : "registration" })
      })
    )
  })

export const registrationPut = operation({
  access: "caller",
  run: registerIf(mayRegister),
  doc: {
    summary: "Register the caller to a channel, which may be closed to them",
    responses: { 202: Acknowledgement },
    errors: [400, 403, 409, 429, 507]
  }
})

/** Registers the user of a request, whether or not the channel is closed. */
export const register = {
  run: registerIf(() => Effect.succeed(true)),
  doc: registrationPut.doc
}

/** Ends the registration of the user of a request, if there is one. */
export const endRegistration = (channel: ChannelToken, call: Call) =>
  changeRegistration(channel, call, (registration, now) =>
    Effect.succeed(
      registration?.on
        ? changed({ type: "registration.delete/1", user: call.user!.id, at: now }, accepted)
        : unchanged(accepted)
    )
  )

export const registrationDelete = operation({
  access: "caller",
  run: (_, call) =>
    Effect.flatMap(channelIdOf(call.params), (id) => endRegistration(channelToken(id), call)),
  doc: {
    summary: "Remove the caller from a channel",
    responses: { 202: Acknowledgement },
    errors: [400, 409, 507]
  }
})
