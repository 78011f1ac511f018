// Tokens of servers that publish. An operator makes them with `bellcast token`; the bucket
// `permissions` has the hash of each.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isCurrentToken } from "#domain/access-token.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { bearerPolicy, type Policy } from "../policy.ts"
import { hashOfToken, isOwnToken, ownTokenPrefix } from "../tokens/own-token.ts"
import { IdentityUnavailable, invalidToken, type Known, unknownToken } from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"
import { makeLastUse } from "./last-use.ts"
import { showTokenExpiry } from "./token-expiry.ts"

/**
 * A revoked token works this long, beside the milliseconds that the projection takes. A read of the
 * bucket takes 0.2 to 1 ms: a server that publishes all the time makes two in a second.
 */
const lifetimeMillis = 500

export const token = Effect.fnUntraced(function* (name: string) {
  const buckets = yield* Buckets
  const used = yield* makeLastUse
  yield* showTokenExpiry
  const unavailable = (cause: unknown) => new IdentityUnavailable({ policy: name, cause })
  const verify = Effect.fnUntraced(function* (text: string) {
    if (!isOwnToken(text)) return invalidToken
    const hash = hashOfToken(text)
    const entry = yield* Effect.mapError(buckets.get("permissions", keys.token(hash)), unavailable)
    const now = yield* Clock.currentTimeMillis
    if (entry === undefined) return unknownToken
    if (!isCurrentToken(entry.value, now)) return invalidToken
    const { channels, expiresAt, name: user, operator = false, users = false } = entry.value
    yield* used(hash, now)
    const rights = { channels, users, operator }
    const found: Known = { _tag: "Known", user, groups: [], rights }
    return expiresAt === undefined ? found : { ...found, expiresAt }
  })
  const verified = (yield* Verifications).make({
    policy: name,
    lifetimeMillis,
    verify
  })
  const policy: Policy = {
    ...bearerPolicy(
      name,
      "Servers, with tokens that the operator made.",
      "https://www.rfc-editor.org/rfc/rfc6750",
      verified
    ),
    bearer: { kind: "local", isFor: (text) => text.startsWith(ownTokenPrefix) },
    waits: true
  }
  return policy
})
