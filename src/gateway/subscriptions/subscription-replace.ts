// POST /subscriptions/replace: a browser's service worker, which has no login, stores its new
// subscription in place of the former one. The secret that it got with that one is the proof.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { renewableBy } from "#domain/subscription/subscription.ts"
import type { Caller } from "#identity/identity.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { UserToken } from "#streams/tokens.ts"
import { findRemoval } from "#subscriptions/removals.ts"
import { readBody } from "../http/request.ts"
import { refuse } from "../http/response.ts"
import { operation } from "../operation.ts"
import { RequestRates } from "../quotas.ts"
import { changeList, listOf } from "../write.ts"
import {
  attributesOf,
  isTooLarge,
  ofBrowser,
  RenewalBody,
  SubscriptionObject,
  subscriptionExample
} from "./form.ts"
import { readWith, refreshed, renewalHash, store } from "./store.ts"

const read = readWith(readBody(RenewalBody))

export const subscriptionReplace = operation({
  access: "anyone",
  negotiates: true,
  takesJson: "always",
  exposes: ["Last-Modified", "ETag", "Location"],
  read,
  run: Effect.fnUntraced(function* ({ posted }, call) {
    yield* (yield* RequestRates).ofRenewal(call.request.address)
    const secret = posted.secret ?? ""
    const of = secretParts(secret)
    if (of === undefined) return yield* refuse("forbidden")
    const hash = renewalHash(secret)
    const now = yield* Clock.currentTimeMillis
    const found = renewableBy(yield* listOf(of.user), hash, of.id, posted, now)
    if (found === undefined) return yield* refuse("forbidden")
    const begun = yield* putAt(found.generation)
    const caller: Caller = {
      id: begun.user,
      user: of.user,
      policy: "renewal",
      verified: true,
      principals: []
    }
    const writer = { ...call, caller, user: caller }
    const decide = Effect.fnUntraced(function* (list: Parameters<typeof store>[1], at: number) {
      const proven = renewableBy(list, hash, of.id, posted, at)
      if (proven === undefined) return yield* refuse("forbidden")
      if (proven.isRepeated) return refreshed(caller, list, posted.id, at, true)
      // The list has no data of a subscription that a push service ended.
      const former = proven.data ?? (yield* removalOf(of.user, of.id))?.put.data ?? begun.data
      const data = { ...attributesOf(former), ...ofBrowser(posted.data) }
      if (isTooLarge(data)) return yield* refuse("subscription-too-large")
      const renewed = { ...posted, data, replaces: of.id, renews: true, renewedBy: hash }
      return yield* store(writer, list, renewed, at, 201)
    })
    return yield* changeList(writer, decide)
  }),
  doc: {
    summary: "Store a subscription in place of one that it has the secret of, without a login",
    body: RenewalBody,
    bodyExample: { renewal: "the secret of the former subscription", ...subscriptionExample },
    bodyRequired: true,
    responses: {
      200: Schema.Struct({ data: SubscriptionObject, renewal: Schema.String }),
      201: Schema.Struct({ data: SubscriptionObject, renewal: Schema.String })
    },
    errors: [400, 403, 406, 409, 413, 415, 429, 507]
  }
})

/** The user and the subscription of a secret; undefined: no secret has this form. */
const secretParts = (
  secret: string
): { readonly user: UserToken; readonly id: string } | undefined => {
  const [, user, id] = /^([\w-]{22})\.([0-9a-f]{64})\.[\w-]{43}$/.exec(secret) ?? []
  return user === undefined || id === undefined ? undefined : { user: user as UserToken, id }
}

/** The put that began a subscription: it names the user. */
const putAt = Effect.fnUntraced(function* (generation: number) {
  const stored = yield* (yield* EventLog).at("log", generation)
  return stored?.message.type === "subscription.put" ? stored.message : yield* refuse("forbidden")
})

/** As `findRemoval`. Refused with 503 when the history of the user takes too long to read. */
export const removalOf = (user: UserToken, id: string) =>
  Effect.timeoutOrElse(findRemoval(user, id), {
    duration: historyMillis,
    orElse: () => refuse("unavailable")
  })

/** Longest read of the history of one user. The command `restore` reads any history. */
const historyMillis = 10_000
