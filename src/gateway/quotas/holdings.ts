// The holdings of a user, for quotas: the number of registrations, and whether there is anything.
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { registrationsSince } from "#nats/kv/registered.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { RequestRates } from "./requests.ts"

/** The number of a user's registrations. */
export const registrationsOf = (user: UserToken) =>
  Effect.map(registrationsSince(user), (held) => held.length)

/**
 * Rejects the first write of a new user when their address has brought too many. `hasNoList`: the
 * list of the user's subscriptions was read before, and there is none.
 */
export const admitNewcomer = Effect.fnUntraced(function* (
  call: Pick<Call, "request" | "caller">,
  hasNoList: boolean
) {
  const { ofNewUser } = yield* RequestRates
  const { user, verified } = call.caller!
  if (ofNewUser === undefined || verified === true) return
  const readList = (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  const [list, registrations] = yield* Effect.all(
    [hasNoList ? Effect.undefined : readList, registrationsOf(user)],
    { concurrency: "unbounded" }
  )
  if (list === undefined && registrations === 0) yield* ofNewUser(call.request.address)
})
