// The registrations of a stand-in go along when a user takes its subscription.
import * as Effect from "effect/Effect"
import { registeredChannels } from "#nats/kv/registered.ts"
import type { UserToken } from "#streams/tokens.ts"
import { changeRegistration } from "../changes.ts"
import { changed, unchanged } from "../decision.ts"
import { ok } from "../http/request.ts"
import type { Writer } from "../write.ts"

const response = ok({})

/**
 * Registers the user of a request to the channels of a stand-in, closed ones, too, and whatever the
 * user holds: an operator chose them. Comes before the move, so that no later broadcast misses the
 * browser; the projector then ends the registrations of the stand-in.
 */
export const carryRegistrations = Effect.fnUntraced(function* (standIn: UserToken, writer: Writer) {
  for (const channel of yield* registeredChannels(standIn))
    yield* changeRegistration(channel, writer, (registration, at) =>
      Effect.succeed(
        registration?.on
          ? unchanged(response)
          : changed({ type: "registration.put/1", user: writer.user!.id, at }, response)
      )
    )
})
