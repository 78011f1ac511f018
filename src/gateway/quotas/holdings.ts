// What a user holds beside the state that a write changes: how many registrations, and anything.
import { Effect } from "effect"
import { countOf, noCounts } from "#domain/registration.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Call } from "../http/request.ts"
import { NewUsers } from "./new-users.ts"

/** How many registrations a user holds, by the latest that is projected. */
export const registrationsOf = Effect.fnUntraced(function* (user: UserToken) {
  const entry = yield* (yield* Buckets).get("registrations", keys.registrationCounts(user))
  return countOf(entry?.value ?? noCounts, user)
})

/** Refuses the first write of a user who would hold something, where the address has too many. */
export const admitNewcomer = Effect.fnUntraced(function* (call: Pick<Call, "request" | "caller">) {
  const newUsers = yield* NewUsers
  if (!newUsers.counts(call.caller)) return
  const { user } = call.caller!
  const [list, registrations] = yield* Effect.all(
    [(yield* Buckets).get("subscriptions", keys.subscriptions(user)), registrationsOf(user)],
    { concurrency: "unbounded" }
  )
  if (list === undefined && registrations === 0) yield* newUsers.admit(call)
})
