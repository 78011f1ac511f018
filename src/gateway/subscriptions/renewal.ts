// Secrets by which a service worker, which has no login, renews a subscription: the pseudonym of
// the user, the id of the subscription, and 256 random bits.
import { createHash, randomBytes } from "node:crypto"
import type { SubscriptionCommand } from "#domain/subscription/command.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import type { Caller } from "#identity/identity.ts"
import type { UserToken } from "#streams/tokens.ts"
import { changed, type Decision } from "../decision.ts"
import { stamp } from "../http/preconditions.ts"
import { type ApiRequest, ok } from "../http/request.ts"
import { viewOf } from "./form.ts"

/** Whether a request asks for a secret: `Prefer: renewal` (RFC 7240). */
export const asksForRenewal = ({ headers }: ApiRequest): boolean =>
  (headers["prefer"] ?? "").split(",").some((each) => /^\s*renewal\s*(;|$)/i.test(each))

export const newRenewal = (user: UserToken, id: string): string =>
  `${user}.${id}.${randomBytes(32).toString("base64url")}`

export const renewalHash = (secret: string): string =>
  createHash("sha256").update(secret).digest("base64url")

/** The user and the subscription of a secret; undefined: no secret has this form. */
export const partsOf = (
  secret: string
): { readonly user: UserToken; readonly id: string } | undefined => {
  const [, user, id] = /^([\w-]{22})\.([0-9a-f]{64})\.[\w-]{43}$/.exec(secret) ?? []
  return user === undefined || id === undefined ? undefined : { user: user as UserToken, id }
}

/** Decides to give a stored subscription another secret. Its timestamp stays. */
export const refreshed = (
  { id: name, user }: Caller,
  list: SubscriptionList,
  id: string,
  now: number,
  isRepeated: boolean
): Decision<SubscriptionList, SubscriptionCommand> => {
  const secret = newRenewal(user, id)
  const { lastModified, seq } = list.subscriptions[id]!
  const body = { data: viewOf(list, id), renewal: secret }
  const of = { user: name, id, generation: seq, renewal: renewalHash(secret) }
  return changed(
    { type: "subscription.renewable/1", ...of, isRepeated, at: now },
    ok(body, stamp(lastModified))
  )
}
