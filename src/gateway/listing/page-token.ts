// Page tokens: where the next page begins, opaque to clients. For GET they may be used again; a DELETE uses each once,
// which all gateways see through the bucket `cache`.
import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { parseJson } from "#domain/json.ts"
import { Buckets } from "#log/bucket.ts"
import { refuseFaults } from "../faults.ts"
import { GatewaySettings } from "../settings.ts"
import { isObject, type JsonObject } from "./value.ts"

export interface PageToken {
  /** The sort fields of the last object shown. */
  readonly last_object: JsonObject
  /** Objects shown so far. */
  readonly offset: number
  readonly nonce: string
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** The text is no token of ours, or one that may not be used any more. */
export const invalidToken = {
  location: "querystring",
  name: null,
  description: "_token has invalid content"
} as const

/** Undefined when the text is no token of ours. */
export const decodeToken = (text: string): PageToken | undefined => {
  const parsed = parseJson(Buffer.from(text, "base64url").toString("utf8"))
  const token = typeof parsed === "string" ? undefined : parsed.json
  if (!isObject(token) || !isObject(token["last_object"])) return undefined
  const { expires, nonce, offset } = token
  const sound =
    Number.isSafeInteger(offset) &&
    Number.isSafeInteger(expires) &&
    typeof nonce === "string" &&
    /^[0-9a-f-]{36}$/.test(nonce)
  return sound ? (token as unknown as PageToken) : undefined
}

export const issueToken = Effect.fnUntraced(function* (lastObject: JsonObject, offset: number) {
  const { paginationTokenValiditySeconds } = yield* GatewaySettings
  const expires = (yield* Clock.currentTimeMillis) + paginationTokenValiditySeconds * 1000
  const token: PageToken = { last_object: lastObject, offset, nonce: randomUUID(), expires }
  return Buffer.from(JSON.stringify(token)).toString("base64url")
})

/** Uses a token up. A token that was used before, anywhere, or that is too old, is refused. */
export const spendToken = Effect.fnUntraced(function* ({ expires, nonce }: PageToken) {
  const { paginationTokenValiditySeconds } = yield* GatewaySettings
  if ((yield* Clock.currentTimeMillis) > expires) return yield* refuseFaults([invalidToken])
  const buckets = yield* Buckets
  yield* buckets
    .put("cache", `page.${nonce}`, { v: 1 }, 0, { ttlSeconds: paginationTokenValiditySeconds + 60 })
    .pipe(Effect.catchTag("AppendConflict", () => refuseFaults([invalidToken])))
})
