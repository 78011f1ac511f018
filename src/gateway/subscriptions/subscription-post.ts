// POST /subscriptions: stores a subscription of the caller. A stored one stays as it is, but is no
// longer suspended.
import * as Effect from "effect/Effect"
import type { JsonObject } from "#basics/json.ts"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import { hasSameKeys } from "#domain/subscription/command.ts"
import type { StoredSubscription, SubscriptionList } from "#domain/subscription/subscription.ts"
import { stamp, unmet } from "../http/preconditions.ts"
import type { Call } from "../http/request.ts"
import {
  type ApiResponse,
  checked,
  type ErrorDetail,
  errorIn,
  ok,
  refuse
} from "../http/response.ts"
import { operation } from "../operation.ts"
import { changed, changeList, type Decision, unchanged } from "../write.ts"
import { attributesOf, isId, isTooLarge, PostBody, subscriptionView } from "./form.ts"
import { type Posted, postDoc, readPost, refreshed, store } from "./store.ts"

const warnings = ["The posted keys are not the stored ones, and were ignored: PUT replaces"]

const read = Effect.fnUntraced(function* (call: Call, errors: Array<ErrorDetail>) {
  const input = yield* readPost(call, errors)
  const { claimed, id, replaces } = input.posted ?? {}
  if (replaces !== undefined && !isId(replaces))
    errors.push(errorIn("body", "replaces", "Must be the id of a subscription"))
  if (errors.length === 0 && claimed !== undefined && claimed !== id) {
    errors.push(
      errorIn("body", "data", `The id ${claimed} differs from the one this data has: ${id}`)
    )
  }
  return input
})

export const subscriptionPost = operation({
  access: "caller",
  negotiates: true,
  takesJson: "always",
  exposes: ["Last-Modified", "ETag", "Location"],
  read,
  run: ({ posted, preconditions }, call) =>
    changeList(
      call,
      Effect.fnUntraced(function* (list, now) {
        const existing = subscriptionView(list, posted.id)
        if (existing === undefined) {
          // A new subscription changes the list, so If-Match refers to the list. If-None-Match
          // refers to the subscription: it is true.
          const ifMatch = { ...preconditions, ifNoneMatch: undefined }
          const target = { timestamp: list.lastModified, exists: true }
          yield* checked(unmet(ifMatch, target, "write"))
          return yield* store(call, list, yield* joined(list, posted), now, 201)
        }
        const timestamp = existing["last_modified"] as number
        yield* checked(unmet(preconditions, { timestamp, exists: true, existing }, "write"))
        const decision = yield* decideStored(call, list, posted, now)
        const stored = list.subscriptions[posted.id]!
        return hasSameKeys(stored.data, posted.data) ? decision : warned(decision)
      })
    ),
  doc: {
    summary: "Store a subscription of the caller; one that is stored already is returned as it is",
    ...postDoc,
    body: PostBody,
    errors: [...postDoc.errors, 404]
  }
})

/** Decides on a subscription that the caller has already. */
const decideStored = Effect.fnUntraced(function* (
  call: Call,
  list: SubscriptionList,
  posted: Posted,
  now: number
) {
  const stored = list.subscriptions[posted.id]!
  const { replaces = posted.id } = posted
  // The former one may be removed already: then this repeats a request.
  if (replaces !== posted.id && Object.hasOwn(list.subscriptions, replaces))
    return yield* store(call, list, { ...posted, ...asStored(stored) }, now, 200)
  if (posted.renews) return refreshed(call.caller!, list, posted.id, now, false)
  const response = ok({ data: subscriptionView(list, posted.id) }, stamp(stored.lastModified))
  if (stored.suspended === undefined) return unchanged(response)
  // The browser is active: send to the subscription again. The response stays the same.
  const of = { id: posted.id, generation: stored.seq }
  return changed({ type: "subscription.cleared", ...of, by: "user", at: now }, response)
})

/**
 * A new subscription, with members that only the replaced one has. The page that posts may not know
 * them, such as a label that the user gave to this browser.
 */
const joined = Effect.fnUntraced(function* (list: SubscriptionList, posted: Posted) {
  const { replaces = "" } = posted
  if (!Object.hasOwn(list.subscriptions, replaces)) return posted
  const data = { ...attributesOf(list.subscriptions[replaces]!.data), ...posted.data }
  return isTooLarge(data) ? yield* refuse("subscription-too-large") : { ...posted, data }
})

/** Data of a stored subscription, for a request whose keys are ignored. */
const asStored = ({ data, vapidKey }: StoredSubscription) => ({ data, vapidKey })

/** A decision on a stored subscription whose response says that the posted keys were ignored. */
const warned = (
  decision: Decision<SubscriptionList, SubscriptionCommand>
): Decision<SubscriptionList, SubscriptionCommand> =>
  decision._tag === "Change"
    ? { ...decision, response: (after) => withWarnings(decision.response(after)) }
    : { ...decision, response: withWarnings(decision.response) }

const withWarnings = (response: ApiResponse): ApiResponse => ({
  ...response,
  body: { ...(response.body as JsonObject), warnings }
})
