// What verbs say of a user who was erased: when that was, and what is left to see.
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { erasureOf } from "#history/past.ts"
import type { UserToken } from "#streams/tokens.ts"

/** When a user was erased, if that was at a time or later; in milliseconds since the epoch. */
export const erasedIn = (user: UserToken, since: number) =>
  Effect.map(erasureOf(user), (erasure) =>
    erasure !== undefined && erasure.at >= since ? erasure.at : undefined
  )

/**
 * Prints, below broadcasts to a user since a time, that the user was erased: broadcasts to channels
 * are missing then. `json`: as a line of JSON.
 */
export const printErased = Effect.fnUntraced(function* (
  json: boolean,
  user: UserToken,
  since: number
) {
  const erased = yield* erasedIn(user, since)
  if (erased === undefined) return
  yield* Console.log(
    json
      ? JSON.stringify({ erased, why: missing })
      : `the user was erased ${new Date(erased).toISOString()}: ${missing}`
  )
})

const missing = "LOG no longer says which broadcasts to channels were for the user before"
