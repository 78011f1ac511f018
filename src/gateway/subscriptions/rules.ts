// The rules for subscriptions that a request or an import stores.
import { isObject } from "#basics/json.ts"
import type { SubscriptionData } from "#domain/subscription/command.ts"
import { checkEndpoint, type EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { subscriptionBytesMax } from "#domain/subscription/list-bounds.ts"
import { decoderOf } from "../http/body.ts"
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import { checkAuth, checkP256dh } from "./push-keys.ts"
import { SubscriptionBody } from "./view.ts"

/**
 * The value of a nested member. Not valueAt() of filters, which also finds a member "keys.auth": a
 * valid key under that name must not hide an invalid one in `keys`.
 */
const memberOf = (value: unknown, [name, ...rest]: ReadonlyArray<string>): unknown => {
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? memberOf(value[name], rest) : undefined
}

/**
 * Errors beyond the schema: an endpoint that is not allowed, keys that cannot encrypt, a VAPID key
 * that this server cannot sign with. Skips values that the schema rejects.
 */
export const ruleErrors = (
  raw: unknown,
  endpoints: EndpointPolicy,
  vapidKeys: ReadonlyArray<string>
): ReadonlyArray<ErrorDetail> => {
  const rules = {
    "data.endpoint": (text: string) => checkEndpoint(text, endpoints),
    "data.keys.auth": checkAuth,
    "data.keys.p256dh": checkP256dh,
    // The push service would reject every push (RFC 8292 section 4.2).
    "data.vapid_public_key": (text: string) =>
      vapidKeys.includes(text) ? undefined : "Must be a VAPID public key of this server"
  }
  return Object.entries(rules).flatMap(([name, rule]) => {
    const value = memberOf(raw, name.split("."))
    const description = typeof value === "string" && value !== "" ? rule(value) : undefined
    return description === undefined ? [] : [errorIn("body", name, description)]
  })
}

/** The part of the data of a body that is stored. */
export const storedOf = ({
  endpoint,
  id: _,
  keys,
  last_modified: __,
  ...rest
}: (typeof SubscriptionBody.Type)["data"]): SubscriptionData => ({
  ...rest,
  endpoint,
  keys: { auth: keys.auth, p256dh: keys.p256dh }
})

const partsOf = ({
  endpoint,
  expirationTime,
  keys,
  vapid_public_key,
  ...attributes
}: SubscriptionData) => ({
  attributes,
  ofBrowser: {
    endpoint,
    keys,
    ...(expirationTime === undefined ? {} : { expirationTime }),
    ...(vapid_public_key === undefined ? {} : { vapid_public_key })
  }
})

/** The members of a subscription that the browser makes anew with each. */
export const ofBrowser = (data: SubscriptionData) => partsOf(data).ofBrowser

/** All other members. */
export const attributesOf = (data: SubscriptionData) => partsOf(data).attributes

/** Measures the stored text: 1e20 has 4 bytes in a body, but 21 as JavaScript writes it. */
export const isTooLarge = (data: SubscriptionData): boolean =>
  Buffer.byteLength(JSON.stringify(data)) > subscriptionBytesMax

const decode = decoderOf(SubscriptionBody)

/** The data of a subscription that no request brought, checked like that of a body. */
export const checkedData = (
  data: unknown,
  endpoints: EndpointPolicy,
  vapidKeys: ReadonlyArray<string>
): SubscriptionData | ReadonlyArray<ErrorDetail> => {
  const errors: Array<ErrorDetail> = []
  const value = decode({ data }, 0, errors)
  errors.push(...ruleErrors({ data }, endpoints, vapidKeys))
  if (value === undefined || errors.length > 0) return errors
  const stored = storedOf(value.data)
  return isTooLarge(stored)
    ? [errorIn("body", "data", `At most ${subscriptionBytesMax} bytes as JSON`)]
    : stored
}
