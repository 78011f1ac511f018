// Sessions of browsers that logged in: by mail (portier-login.ts), or at the console by a link of a
// site (links.ts). A session is a random token, which the bucket `cache` has under its HMAC with
// the user and the groups that the login said.
import { randomBytes } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { hmacFor, useridSecret, userNames } from "../principals.ts"
import { IdentityUnavailable, invalidToken, unknownToken, type Verdict } from "../verdict.ts"

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
  const entryOf = (token: string) =>
    buckets.get("cache", keyOf(token)).pipe(Effect.timeout(timeout), Effect.mapError(unavailable))

  /** Opens a session of a user; `token` is 64 hexadecimal digits. */
  const open = Effect.fnUntraced(function* (user: string, groups: ReadonlyArray<string> = []) {
    const token = randomBytes(tokenBytes).toString("hex")
    const until = (yield* Clock.currentTimeMillis) + ttlSeconds * 1000
    const entry = { v: 1, until, user: nameOf(user), groups: groups.map(nameOf) } as const
    yield* buckets
      .put("cache", keyOf(token), entry, 0, { ttlSeconds })
      .pipe(Effect.timeout(timeout), Effect.mapError(unavailable))
    return { token, until }
  })

  /** The user of a token. */
  const find = Effect.fnUntraced(function* (
    token: string
  ): Effect.fn.Return<Verdict, IdentityUnavailable> {
    const session = (yield* entryOf(token))?.value
    if (session === undefined) return unknownToken
    if (session.until <= (yield* Clock.currentTimeMillis)) return invalidToken
    const { groups, until, user } = session
    return { _tag: "Known", user, groups, expiresAt: until }
  })

  /** Ends the session of a token, in all gateways. */
  const close = Effect.fnUntraced(function* (token: string) {
    const entry = yield* entryOf(token)
    if (entry === undefined) return
    yield* buckets
      .remove("cache", entry.revision)
      .pipe(Effect.timeout(timeout), Effect.mapError(unavailable))
  })
  return { open, find, close }
})
