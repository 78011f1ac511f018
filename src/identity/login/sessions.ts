// Sessions of browsers that logged in: a random token, stored in the bucket `cache` under its HMAC.
import { randomBytes } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { hmacFor, useridSecret, userNames } from "../principals.ts"
import { IdentityUnavailable, invalidToken, type Verdict } from "../verdict.ts"

const tokenBytes = 32
const timeout = "5 seconds"

export type Sessions = Effect.Success<ReturnType<typeof makeSessions>>

/** Sessions of a policy. They last `ttlSeconds`, however they are used. */
export const makeSessions = Effect.fnUntraced(function* (policy: string, ttlSeconds: number) {
  const buckets = yield* Buckets
  const secret = yield* useridSecret
  const nameOf = userNames(secret)
  const hmac = hmacFor(secret, `bellcast session ${policy}`)
  const keyOf = (token: string) => keys.session(hmac(token, "base64url"))
  const unavailable = (cause: unknown) => new IdentityUnavailable({ policy, cause })

  /** Opens a session of a user; returns its token, 64 hexadecimal digits. */
  const open = Effect.fnUntraced(function* (user: string) {
    const token = randomBytes(tokenBytes).toString("hex")
    const until = (yield* Clock.currentTimeMillis) + ttlSeconds * 1000
    yield* buckets
      .put("cache", keyOf(token), { v: 1, until, user: nameOf(user) }, 0, { ttlSeconds })
      .pipe(Effect.timeout(timeout), Effect.mapError(unavailable))
    return token
  })

  /** The user of a token. */
  const find = Effect.fnUntraced(function* (
    token: string
  ): Effect.fn.Return<Verdict, IdentityUnavailable> {
    const entry = yield* buckets
      .get("cache", keyOf(token))
      .pipe(Effect.timeout(timeout), Effect.mapError(unavailable))
    const session = entry?.value
    const isOver = session === undefined || session.until <= (yield* Clock.currentTimeMillis)
    if (isOver) return invalidToken
    return { _tag: "Known", user: session.user, groups: [], expiresAt: session.until }
  })
  return { open, find }
})
