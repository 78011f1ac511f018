// Page tokens: where the next page begins, opaque to clients, signed for one user. A GET may use
// its token again; a DELETE uses each once, which all gateways see through the bucket `cache`.
import { randomUUID, timingSafeEqual } from "node:crypto"
import { Clock, Effect, Option, Redacted } from "effect"
import { Settings } from "#config"
import { parseJson } from "#domain/json.ts"
import { hmacSha256 } from "#identity/hmac.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { refuseInvalid } from "../../http/errors.ts"
import { GatewaySettings } from "../../settings.ts"
import { isObject, type JsonObject } from "./value.ts"

export interface PageToken {
  /** The sort fields of the last object shown. */
  readonly last_object: JsonObject
  /** Objects shown so far. */
  readonly offset: number
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly expires: number
  /** The part of the token that its signature covers, as it came. */
  readonly signed: string
  readonly signature: string
}

/** The text is not a token that this service issued to this user, or may not be used any more. */
export const invalidToken = {
  location: "querystring",
  name: null,
  description: "_token has invalid content"
} as const

/** Undefined when the text does not have the form of a token. Its signature is not checked here. */
export const decodeToken = (text: string): PageToken | undefined => {
  const [signed = "", signature = "", ...rest] = text.split(".")
  if (signature === "" || rest.length > 0) return undefined
  const parsed = parseJson(Buffer.from(signed, "base64url").toString("utf8"))
  const token = typeof parsed === "string" ? undefined : parsed.json
  if (!isObject(token) || !isObject(token["last_object"])) return undefined
  const { expires, nonce, offset } = token
  const sound =
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(expires) &&
    typeof nonce === "string" &&
    /^[0-9a-f-]{36}$/.test(nonce)
  return sound ? { ...(token as unknown as PageToken), signed, signature } : undefined
}

/** Separates this key from the other uses of the user id secret. */
const purpose = "bellcast page token"

/** HMAC-SHA256 of a token and its user, under a key derived from the user id secret. */
export const signatureOf = (secret: string, user: string, signed: string): string =>
  hmacSha256(hmacSha256(secret)(purpose, "hex"))(`${user}.${signed}`, "base64url")

const secretOf = Effect.map(Settings, ({ useridHmacSecret }) =>
  Option.match(useridHmacSecret, { onNone: () => "", onSome: Redacted.value })
)

export const issueToken = Effect.fnUntraced(function* (
  user: string,
  lastObject: JsonObject,
  offset: number
) {
  const { paginationTokenValiditySeconds } = yield* GatewaySettings
  const expires = (yield* Clock.currentTimeMillis) + paginationTokenValiditySeconds * 1000
  const token = { last_object: lastObject, offset, nonce: randomUUID(), expires }
  const signed = Buffer.from(JSON.stringify(token)).toString("base64url")
  return `${signed}.${signatureOf(yield* secretOf, user, signed)}`
})

/** Whether a gateway of this service issued the token to this user. */
export const isGenuine = Effect.fnUntraced(function* (
  { signature, signed }: PageToken,
  user: string
) {
  const expected = Buffer.from(signatureOf(yield* secretOf, user, signed))
  const given = Buffer.from(signature)
  return given.length === expected.length && timingSafeEqual(given, expected)
})

/** Uses a genuine token up. A token that was used before, anywhere, or is too old, is refused. */
export const spendToken = Effect.fnUntraced(function* ({ expires, nonce }: PageToken) {
  const { paginationTokenValiditySeconds } = yield* GatewaySettings
  if ((yield* Clock.currentTimeMillis) > expires) return yield* refuseInvalid([invalidToken])
  const buckets = yield* Buckets
  yield* buckets
    .put("cache", keys.usedPageToken(nonce), { v: 1 }, 0, {
      ttlSeconds: paginationTokenValiditySeconds + 60
    })
    .pipe(Effect.catchTag("AppendConflict", () => refuseInvalid([invalidToken])))
})
