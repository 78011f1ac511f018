// PUT and DELETE /channels/{id}/registration: a user's place in a channel. Both say 202, but are done when they say it.
import { Effect, Schema } from "effect"
import { channelToken } from "#streams/tokens.ts"
import { ok } from "../ask.ts"
import { channelIdOf } from "../channel-id.ts"
import type { Operation } from "../operation.ts"
import { changeRegistration } from "../write.ts"

export const Acknowledgement = Schema.Struct({
  code: Schema.Literal(202),
  message: Schema.Literal("Accepted")
})
export const accepted = ok({ code: 202, message: "Accepted" }, {}, 202)

const operation = (on: boolean): Operation<void> => ({
  access: "caller",
  read: () => Effect.void,
  run: Effect.fnUntraced(function* (_, { caller, params }) {
    const channel = channelToken(yield* channelIdOf(params))
    const { id, user } = caller!
    return yield* changeRegistration(channel, user, (registration, now) => {
      if ((registration?.on ?? false) === on) return { _tag: "Unchanged", answer: accepted }
      const type = on ? "registration.put/1" : "registration.delete/1"
      return { _tag: "Change", command: { type, user: id, at: now }, answer: () => accepted }
    })
  }),
  doc: {
    summary: on ? "Register the caller to a channel" : "Remove the caller from a channel",
    answers: { 202: Acknowledgement },
    faults: [400, 409, 507]
  }
})

export const registrationPut = operation(true)
export const registrationDelete = operation(false)
