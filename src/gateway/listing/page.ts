// Pages of a list: the URL of the next one, and the token in it, which names the place where that
// page begins. A token is opaque to clients and signed for one caller and one list. A DELETE may
// use a token only once, and notes that in the bucket `cache` for all gateways.
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isSameSecret } from "#basics/hmac.ts"
import { isObject, type JsonObject, parseJson } from "#basics/json.ts"
import type { Settings } from "#config"
import { hmacFor, useridSecret } from "#identity/principals.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { Call } from "../http/request.ts"
import { errorIn, type Refused, refuseInvalid } from "../http/response.ts"
import { GatewaySettings } from "../settings.ts"

/**
 * Characters in the URL of Next-Page. nginx and HAProxy allow a request line of 8 KiB, this server
 * a head of 16 KiB. The rest of the 8 KiB is for the method and the HTTP version.
 */
const nextPageCharsMax = 8_000

const endless = errorIn(
  "querystring",
  null,
  `The URL of the next page would have more than ${nextPageCharsMax} characters: ` +
    "shorten the query string, or sort by fields with shorter values"
)

/** The most objects in a page: those that the client wants, and at most `max`. 0: no limit. */
export const limitOf = ({ limit }: { readonly limit: number }, max: number) =>
  Effect.map(GatewaySettings, ({ paginateBy }) =>
    Math.min(...[limit, paginateBy, max].map((each) => each || Number.MAX_SAFE_INTEGER))
  )

/** A page of a list. */
interface Shown {
  /** The path of the list. */
  readonly path: string
  /** The place behind which the list goes on, for the token; undefined: this is the last page. */
  readonly place: JsonObject | undefined
  /** Undefined: the list takes none. */
  readonly limit: number | undefined
}

/**
 * The header with the absolute URL of the next page: the same query string with another limit and
 * token. The last page has none.
 */
export const nextPage = Effect.fnUntraced(function* (
  call: Call,
  { limit, path, place }: Shown
): Effect.fn.Return<Record<string, string>, Refused, GatewaySettings | Settings> {
  if (place === undefined) return {}
  // Check before signing: a field may have 16 KiB, and the token is the longest part of the URL.
  if (JSON.stringify(place).length > nextPageCharsMax) return yield* refuseInvalid([endless])
  const token = yield* issueToken(call, place)
  const others = call.query
    .split("&")
    .filter((pair) => pair !== "" && !/^(_limit|_token)(=|$)/.test(pair))
  const limited = limit === undefined ? [] : [`_limit=${limit}`]
  const query = [...others, ...limited, `_token=${token}`].join("&")
  const url = `${call.rootUrl}${path}?${query}`
  if (url.length > nextPageCharsMax) return yield* refuseInvalid([endless])
  return { "Next-Page": url }
})

/** How long a token is valid. A client follows a page at once; the rest is for one that retries. */
const validitySeconds = 600

export interface PageToken {
  /** The sort fields of the last object on the page before. */
  readonly last_object: JsonObject
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** The signed part of the token, as received. */
  readonly signed: string
  readonly signature: string
}

/** The error of a token that is malformed, forged, expired or used. */
export const invalidToken = errorIn("querystring", null, "_token has invalid content")

/** The token of a text; undefined when malformed. Does not check the signature. */
export const pageTokenOf = (text: string): PageToken | undefined => {
  const [signed = "", signature = "", ...rest] = text.split(".")
  if (signature === "" || rest.length > 0) return undefined
  const parsed = parseJson(Buffer.from(signed, "base64url").toString("utf8"))
  const token = typeof parsed === "string" ? undefined : parsed.json
  if (!isObject(token) || !isObject(token["last_object"])) return undefined
  const { expires, nonce } = token
  const isValid =
    Number.isSafeInteger(expires) && typeof nonce === "string" && /^[0-9a-f-]{36}$/.test(nonce)
  return isValid ? { ...(token as unknown as PageToken), signed, signature } : undefined
}

/** Separates the key of page tokens from other uses of the user id secret. */
const purpose = "bellcast page token"

/**
 * The HMAC-SHA256 of a token, its caller and its list, with a key derived from the user id secret.
 * A user has several names in paths, and one pseudonym.
 */
const signatureOf = (
  secret: string,
  { caller, endpoint, params, user }: Call,
  signed: string
): string => {
  const list = JSON.stringify([caller!.user, endpoint, { ...params, user: user!.user }])
  return hmacFor(secret, purpose)(`${list}.${signed}`, "base64url")
}

const issueToken = Effect.fnUntraced(function* (call: Call, lastObject: JsonObject) {
  const expires = (yield* Clock.currentTimeMillis) + validitySeconds * 1000
  const token = { last_object: lastObject, nonce: randomUUID(), expires }
  const signed = Buffer.from(JSON.stringify(token)).toString("base64url")
  return `${signed}.${signatureOf(yield* useridSecret, call, signed)}`
})

/** Whether a gateway with the same secret issued the token to this user, for this list. */
export const isGenuine = Effect.fnUntraced(function* (
  { signature, signed }: PageToken,
  call: Call
) {
  return isSameSecret(signature, signatureOf(yield* useridSecret, call, signed))
})

/** Uses a token up. Rejects a token that is too old, or that any gateway has seen before. */
export const spendToken = Effect.fnUntraced(function* ({ expires, nonce }: PageToken) {
  if ((yield* Clock.currentTimeMillis) > expires) return yield* refuseInvalid([invalidToken])
  const buckets = yield* Buckets
  yield* buckets
    .put("cache", keys.usedPageToken(nonce), { v: 1 }, 0, {
      ttlSeconds: validitySeconds + 60
    })
    .pipe(Effect.catchTag("AppendConflict", () => refuseInvalid([invalidToken])))
})
