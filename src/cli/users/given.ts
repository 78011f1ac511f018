// The user whom a verb is given: an id, or the pseudonym that `audit` prints.
import * as Effect from "effect/Effect"
import type { User } from "#identity/identity.ts"
import { isUserToken } from "#streams/tokens.ts"
import { failed } from "../terminal/output.ts"
import { ownUsers } from "./principal.ts"

export const userGivenHelp =
  "<policy>:<id> or <policy>:<mail address>, or the pseudonym that audit prints"

/** Fails where an id needs the user id secret and the secret is missing or not the service's. */
export const userGiven = Effect.fnUntraced(function* (given: string) {
  if (isUserToken(given)) return { id: given, user: given } satisfies User
  const found = (yield* ownUsers).find(given)
  return typeof found === "string" ? yield* failed(`${given}: ${found}`) : found
})
