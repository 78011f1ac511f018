// PUT and DELETE /channels/{id}/registration: a user's place in a channel. GET /registrations lists
// those of the caller. A write responds 202 after the change is visible.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Settings } from "#config"
import { emptyChannel } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { type ChannelToken, channelToken, decodeTokens } from "#streams/tokens.ts"
import { channelsAt, registrationsSince } from "#subscriptions/audience.ts"
import type { Call } from "../http/request.ts"
import { ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { limitOf, nextPage } from "../listing/page.ts"
import { type ListInput, readPages } from "../listing/query.ts"
import { operation } from "../operation.ts"
import { registrationsOf } from "../quotas.ts"
import { channelIdOf, mayRegister } from "../rights.ts"
import { changed, changeRegistration, unchanged } from "../write.ts"

export const Acknowledgement = Schema.Struct({
  code: Schema.Literal(202),
  message: Schema.Literal("Accepted")
}).annotate({ identifier: "Acknowledgement" })
export const accepted = ok({ code: 202, message: "Accepted" }, {}, 202)

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
          type: "registration.put",
          user: name,
          at: now,
          registrationsMax
        } as const
        return changed(command, accepted, { growth: isNew ? "channel" : "registration" })
      })
    )
  })

/** Whether a registration begins the channel. */
const isNewChannel = Effect.fnUntraced(function* (channel: ChannelToken) {
  const entry = yield* (yield* Buckets).get("channels", keys.channelRegistrations(channel))
  return (entry?.value ?? emptyChannel).registrations === 0
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

/** Ends the registration of the user of a request, if there is one. */
export const endRegistration = (channel: ChannelToken, call: Call) =>
  changeRegistration(channel, call, (registration, now) =>
    Effect.succeed(
      registration?.on
        ? changed({ type: "registration.delete", user: call.user!.id, at: now }, accepted)
        : unchanged(accepted)
    )
  )

/** Most channels of a page. Each is read from LOG, by the sequence of its registration. */
const channelsMax = 100

const Registrations = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

export const registrationsGet = operation({
  access: "caller",
  exposes: ["Next-Page", "Total-Records"],
  read: readPages,
  run: Effect.fnUntraced(function* ({ listing }: ListInput, call) {
    const limit = yield* limitOf(listing, channelsMax)
    const began = yield* registrationsSince(call.caller!.user)
    const behind = Number(listing.token?.last_object["since"] ?? 0)
    const rest = began.filter((since) => since > behind)
    const shown = rest.slice(0, limit)
    const data = decodeTokens(yield* channelsAt(shown)).map((id) => ({ id }))
    const next = yield* nextPage(call, {
      path: "/registrations",
      place: rest.length > limit ? { since: shown.at(-1)! } : undefined,
      limit
    })
    return ok({ data }, { "Total-Records": String(began.length), ...noStore, ...next })
  }),
  doc: {
    summary: "List the channels that the caller is registered to, the first one first",
    parameters: ["pages"],
    responses: { 200: Registrations },
    errors: [400, 413]
  }
})
