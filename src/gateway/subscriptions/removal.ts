// The removal of a subscription by a push service, as LOG has it.
import * as Effect from "effect/Effect"
import { findRemoval } from "#nats/subscriptions/removals.ts"
import type { UserToken } from "#streams/tokens.ts"
import { refuse } from "../http/errors.ts"

/** Longest read of the history of one user. The command `restore` reads any history. */
const historyMillis = 10_000

/** As `findRemoval`. Refused with 503 when the history of the user takes too long to read. */
export const removalOf = (user: UserToken, id: string) =>
  Effect.timeoutOrElse(findRemoval(user, id), {
    duration: historyMillis,
    orElse: () => refuse("unavailable")
  })
