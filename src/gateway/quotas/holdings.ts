// The holdings of a user, for quotas: the number of registrations, and whether there is anything.
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import { registrationsSince } from "#subscriptions/audience.ts"
import type { Call } from "../http/request.ts"
import { RequestRates } from "./requests.ts"

/** The number of a user's registrations. */
export const registrationsOf = (user: UserToken) =>
  Effect.map(registrationsSince(user), (held) => held.length)

/**
 * Whether a write is the first of a user who counts as a new one of an address. `hasNoList`: the
 * list of the user's subscriptions was read before, and there is none.
 */
export const isNewcomer = Effect.fnUntraced(function* (
  call: Pick<Call, "caller">,
  hasNoList: boolean
) {
  const { countsNewUsers } = yield* RequestRates
  const { user, verified } = call.caller!
  if (!countsNewUsers || verified === true) return false
  const readList = (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  const [list, registrations] = yield* Effect.all(
    [hasNoList ? Effect.undefined : readList, registrationsOf(user)],
    { concurrency: "unbounded" }
  )
  return list === undefined && registrations === 0
})
