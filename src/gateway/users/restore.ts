// POST /users/{user}/subscriptions/{id}/restore: puts a subscription back that a push service
// called gone, or ends its suspension. For operators.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Settings } from "#config"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { type SubscriptionList, storedIn } from "#domain/subscription/subscription.ts"
import type { User } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import { isStoredByAnother, undoing } from "#subscriptions/removals.ts"
import type { Call } from "../http/request.ts"
import { ok, refuse } from "../http/response.ts"
import { noStore } from "../http/response-headers.ts"
import { recordLook, userInPath } from "../named-user.ts"
import { operation } from "../operation.ts"
import { idInPath, unknownSubscription } from "../subscriptions/form.ts"
import { removalOf } from "../subscriptions/subscription-replace.ts"
import { changed, changeList, listOf, unchanged } from "../write.ts"
import { Device, deviceOf } from "./user.ts"

export const restorePost = operation({
  access: "operator",
  run: Effect.fnUntraced(function* (_, call) {
    const user = yield* userInPath(call)
    yield* recordLook(call, user.user)
    const id = yield* idInPath(call)
    return yield* restore({ ...call, user }, id)
  }),
  doc: {
    summary: "Put back a subscription that a push service called gone, or end its suspension",
    responses: { 200: Schema.Struct({ data: Device }) },
    errors: [404, 409, 507]
  }
})

const restore = Effect.fnUntraced(function* (call: Call & { readonly user: User }, id: string) {
  const { user } = call.user
  const by = call.caller!.id
  yield* changeList(call, (list, now) => decide(user, id, list, now, by)).pipe(
    // Another user has stored the subscription since `decide` read its owner.
    Effect.catchTag("Refused", (refused) =>
      refused.response.error === "held-by-another" ? unknownSubscription(id) : refused
    )
  )
  const stored = storedIn(yield* listOf(user), id)
  if (stored === undefined) return yield* unknownSubscription(id)
  return ok({ data: yield* deviceOf(id, stored) }, noStore)
})

/** Decides how a subscription comes back. One that nothing happened to stays as it is. */
const decide = Effect.fnUntraced(function* (
  user: UserToken,
  id: string,
  list: SubscriptionList,
  now: number,
  by: string
) {
  const stored = storedIn(list, id)
  if (stored !== undefined && stored.suspended === undefined) return unchanged(done)
  // A subscription that its user removed, or that another one took, is not given back.
  const removal = yield* removalOf(user, id)
  if (removal === undefined) return yield* unknownSubscription(id)
  if (stored === undefined && (yield* isStoredByAnother(user, list, removal)))
    return yield* unknownSubscription(id)
  const message = undoing(removal, list, now, yield* Settings)
  if (message === undefined) return yield* refuse("too-many-subscriptions")
  const command: SubscriptionCommand =
    message.type === "subscription.put"
      ? { type: message.type, ...message.body }
      : { type: message.type, ...message.body }
  return changed(command, done, { by })
})

const done = ok(undefined)
