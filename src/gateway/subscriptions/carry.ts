// The registrations of a stand-in go along when a user takes its subscription.
import * as Effect from "effect/Effect"
import { registeredChannels, registrationsAtOnce } from "#nats/kv/registered.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { changeRegistration } from "../changes.ts"
import { changed, unchanged } from "../decision.ts"
import { refuse } from "../http/errors.ts"
import { ok } from "../http/request.ts"
import type { Writer } from "../write.ts"

const response = ok({})

/** The longest time for the registrations of one stand-in. A repeat goes on where this one ends. */
const carryMillis = 5_000

/**
 * Registers the user of a request to the channels of a stand-in, closed ones, too, and whatever the
 * user holds: an operator chose them. Comes before the move, so that no later broadcast misses the
 * browser; the projector then ends the registrations of the stand-in. Refused with 503 when that
 * takes too long.
 */
export const carryRegistrations = Effect.fnUntraced(
  function* (standIn: UserToken, writer: Writer) {
    const register = (channel: ChannelToken) =>
      changeRegistration(channel, writer, (registration, at) =>
        Effect.succeed(
          registration?.on
            ? unchanged(response)
            : changed({ type: "registration.put/1", user: writer.user!.id, at }, response)
        )
      )
    const [first, ...rest] = yield* registeredChannels(standIn)
    if (first === undefined) return
    // Several first writes at once would count as several new users.
    yield* register(first)
    yield* Effect.forEach(rest, register, { concurrency: registrationsAtOnce, discard: true })
  },
  Effect.timeoutOrElse({ duration: carryMillis, orElse: () => refuse("unavailable") })
)
