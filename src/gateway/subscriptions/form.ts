// A subscription as clients send it and see it: its schemas, its id, and the rules that a request
// or an import must keep.
import { ECDH } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "#basics/json.ts"
import { Locale } from "#domain/broadcast.ts"
import type { SubscriptionData } from "#domain/subscription/command.ts"
import { checkEndpoint, type EndpointPolicy } from "#domain/subscription/endpoint.ts"
import { type SubscriptionList, subscriptionBytesMax } from "#domain/subscription/subscription.ts"
import { type Call, decoderOf } from "../http/request.ts"
import { badId, type ErrorDetail, errorIn, refuse, refuseInvalid } from "../http/response.ts"

const text = Schema.String.pipe(Schema.check(Schema.isNonEmpty({ message: "Required" })))
/** In characters. */
const labelMax = 100
const Label = Schema.String.pipe(Schema.check(Schema.isMaxLength(labelMax)))
const anything = Schema.Record(Schema.String, Schema.Unknown)

/** The body of POST and PUT. Clients may store other members; of `keys` only the two are stored. */
export const SubscriptionBody = Schema.Struct({
  data: Schema.StructWithRest(
    Schema.Struct({
      endpoint: text,
      keys: Schema.StructWithRest(Schema.Struct({ auth: text, p256dh: text }), [anything]),
      id: Schema.optionalKey(Schema.String),
      /** The application server key. Default: the current one, or that of one that moves. */
      vapid_public_key: Schema.optionalKey(text),
      locale: Schema.optionalKey(Locale),
      /** The user's name for the browser. */
      label: Schema.optionalKey(Label)
    }),
    [anything]
  )
})

/** The body of POST. `replaces`: the id of another subscription of the caller, which is removed. */
export const PostBody = Schema.Struct({
  ...SubscriptionBody.fields,
  replaces: Schema.optionalKey(text)
})

/** The body of POST .../replace. `renewal`: the secret of the former subscription. */
export const RenewalBody = Schema.Struct({ ...SubscriptionBody.fields, renewal: text })

/**
 * The example of the API description, with the keys of RFC 8291 section 5. The server rejects every
 * endpoint below .example with 400: a tool that sends examples must not cause pushes to a real
 * host.
 */
export const subscriptionExample = {
  data: {
    endpoint: "https://push-service.example/made-by-the-browser",
    keys: {
      auth: "BTBZMqHH6r4Tts7J_aSIgg",
      p256dh:
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    }
  }
}

export const SubscriptionObject = Schema.StructWithRest(
  Schema.Struct({
    endpoint: Schema.String,
    keys: Schema.Struct({ auth: Schema.String, p256dh: Schema.String }),
    id: Schema.String,
    last_modified: Schema.Int
  }),
  [anything]
).annotate({ identifier: "Subscription" })

/** An object of a list: `_fields` selects members, a bound on the timestamp adds tombstones. */
export const ListedObject = Schema.StructWithRest(
  Schema.Struct({
    id: Schema.String,
    last_modified: Schema.Int,
    endpoint: Schema.optionalKey(Schema.String),
    keys: Schema.optionalKey(
      Schema.Struct({
        auth: Schema.optionalKey(Schema.String),
        p256dh: Schema.optionalKey(Schema.String)
      })
    ),
    deleted: Schema.optionalKey(Schema.Literal(true))
  }),
  [anything]
).annotate({ identifier: "ListedSubscription" })

export const Tombstone = Schema.Struct({
  id: Schema.String,
  last_modified: Schema.Int,
  deleted: Schema.Literal(true)
}).annotate({ identifier: "Tombstone" })

/** A subscription of a list, with its id and timestamp; undefined when there is none. */
export const subscriptionView = (list: SubscriptionList, id: string): JsonObject | undefined => {
  const stored = Object.hasOwn(list.subscriptions, id) ? list.subscriptions[id] : undefined
  return stored === undefined
    ? undefined
    : { ...stored.data, id, last_modified: stored.lastModified }
}

export const tombstone = (id: string, lastModified: number): JsonObject => ({
  id,
  last_modified: lastModified,
  deleted: true
})

/** Whether a text has the syntax of ids in paths and bodies. */
export const isId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(id)

/** The id in the path of a request. Fails with 400 where it has another syntax. */
export const idInPath = ({ params }: Pick<Call, "params">) => {
  const id = params["id"] ?? ""
  return isId(id) ? Effect.succeed(id) : refuseInvalid([badId])
}

/** The error of an id that the user has no subscription of. */
export const unknownSubscription = (id: string) =>
  refuse("unknown-object", { details: { id, resource_name: "subscription" } })

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

/**
 * The value of a nested member. Not valueAt() of filters, which also finds a member "keys.auth": a
 * valid key under that name must not hide an invalid one in `keys`.
 */
const memberOf = (value: unknown, [name, ...rest]: ReadonlyArray<string>): unknown => {
  if (name === undefined) return value
  return isObject(value) && Object.hasOwn(value, name) ? memberOf(value[name], rest) : undefined
}

/**
 * The error of a p256dh key, found when it is stored, not at the first push (RFC 8291). OpenSSL
 * also takes compressed and hybrid points; browsers send none.
 */
const checkP256dh = (text: string): string | undefined => {
  const bytes = bytesOf(text)
  if (bytes?.length !== 65 || bytes[0] !== 0x04)
    return "Must be an uncompressed P-256 point (65 bytes) in base64url"
  try {
    ECDH.convertKey(bytes, "prime256v1")
    return undefined
  } catch {
    return "Must be a point on the curve P-256"
  }
}

/** The error of an auth secret. */
const checkAuth = (text: string): string | undefined =>
  bytesOf(text)?.length === 16 ? undefined : "Must be 16 bytes in base64url"

/** Decodes both base64 alphabets, with or without padding: browsers and libraries differ. */
const bytesOf = (text: string): Buffer | undefined =>
  /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, "base64url") : undefined

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

/** Measures the stored text: 1e20 has 4 bytes in a body, but 21 as JavaScript writes it. */
export const isTooLarge = (data: SubscriptionData): boolean =>
  Buffer.byteLength(JSON.stringify(data)) > subscriptionBytesMax

/** The members of a subscription that the browser makes anew with each. */
export const ofBrowser = (data: SubscriptionData) => partsOf(data).ofBrowser

/** All other members. */
export const attributesOf = (data: SubscriptionData) => partsOf(data).attributes

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

const decode = decoderOf(SubscriptionBody)
