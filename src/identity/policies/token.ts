// Tokens of servers that publish. An operator makes them with `bellcast token`; the bucket
// `permissions` has the hash of each.

import { createHash, randomBytes } from "node:crypto"
import { crc32 } from "node:zlib"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { LruCache } from "#basics/bounded.ts"
import { type AccessToken, isCurrentToken } from "#domain/access-token.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { showTokens } from "#telemetry/request-metrics.ts"
import { bearerPolicy, type Policy } from "../policy.ts"
import { IdentityUnavailable, invalidToken, type Known, unknownToken } from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"

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

// The form of our own tokens: `bellcast_`, 32 random bytes in base62, and a checksum. Secret
// scanners find them by the prefix, and the checksum tells them from other texts and shows typing
// errors without a look-up. Tokens of GitHub and npm have the same form.

/** Tokens of the policy `token` begin so. They go to no other policy, even where it is off. */
export const ownTokenPrefix = "bellcast_"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base = BigInt(digits.length)
/** 62^43 > 2^256, and 62^6 > 2^32. */
const randomLength = 43
const checksumLength = 6

/** In base62, filled up with zeros. */
const base62 = (value: bigint, length: number): string => {
  let text = ""
  for (let rest = value; rest > 0n; rest /= base) text = digits[Number(rest % base)] + text
  return text.padStart(length, "0")
}

/** The CRC-32 of the random digits. */
const checksumOf = (random: string): string => base62(BigInt(crc32(random)), checksumLength)

/** The token of 32 random bytes. */
export const tokenOf = (bytes: Uint8Array): string => {
  const random = base62(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), randomLength)
  return ownTokenPrefix + random + checksumOf(random)
}

export const freshToken = (): string => tokenOf(randomBytes(32))

const form = new RegExp(
  `^${ownTokenPrefix}([0-9A-Za-z]{${randomLength}})([0-9A-Za-z]{${checksumLength}})$`
)

/** Whether a text has the form of a token and the right checksum. */
export const isOwnToken = (text: string): boolean => {
  const [, random = "", checksum] = form.exec(text) ?? []
  return checksum === checksumOf(random)
}

/**
 * The stored hash of a token. One round of SHA-256 suffices: slow hashes with a salt protect
 * passwords, which people choose; nobody guesses 256 random bits.
 */
export const hashOfToken = (token: string): string =>
  createHash("sha256").update(token).digest("base64url")

// Records the day of the last use of each token, in the bucket `cache`: one write a token and day.
// A failure of the bucket never fails a request.

const dayMillis = 24 * 3_600_000
/** Tokens whose use of today is known to be recorded. */
const recordedMax = 10_000
const writeTimeout = "5 seconds"

/** The day of a time, in UTC: `2026-11-22`. */
const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** A function that records the use of a token at a time in milliseconds, without waiting. */
const makeLastUse = Effect.gen(function* () {
  const buckets = yield* Buckets
  const scope = yield* Effect.scope
  const recorded = new LruCache<true>(recordedMax)
  const record = Effect.fnUntraced(function* (hash: string, now: number) {
    const key = keys.tokenUse(hash)
    const day = dayOf(now)
    const entry = yield* buckets.get("cache", key)
    if (entry === undefined || entry.value.day < day)
      yield* buckets.put("cache", key, { v: 1, day }, entry?.revision ?? 0, { ttlSeconds: "never" })
    recorded.set(hash, true, now - (now % dayMillis) + dayMillis)
  })
  return (hash: string, now: number): Effect.Effect<unknown> =>
    recorded.get(hash, now) === undefined
      ? Effect.forkIn(Effect.ignore(Effect.timeout(record(hash, now), writeTimeout)), scope)
      : Effect.void
})

// Shows as metrics when each token of a server ends, so that its operator is told before: from then
// on the server's requests get 401.

const every = "15 seconds"

/** The newest token of each name, but for those that were revoked or never end. */
const expiriesOf = (tokens: ReadonlyArray<AccessToken>) => {
  const newest = new Map(
    [...tokens].sort((a, b) => a.createdAt - b.createdAt).map((each) => [each.name, each])
  )
  return [...newest.values()].flatMap(({ expiresAt, name, revokedAt }) =>
    expiresAt === undefined || revokedAt !== undefined ? [] : [{ expiresAt, name }]
  )
}

const told = { told: false }

const show = (state: { told: boolean }) =>
  Effect.gen(function* () {
    const entries = yield* (yield* Buckets).getMany("permissions", [keys.tokens], 0)
    if (entries !== undefined) return showTokens(expiriesOf(entries.map(({ value }) => value)))
    if (state.told) return
    state.told = true
    yield* Effect.logWarning("metrics cannot show when tokens end: there are more than 1,024")
  })

/** Reads the tokens every 15 s until the scope closes. */
const showTokenExpiry = Effect.suspend(() => Effect.ignore(show(told))).pipe(
  Effect.andThen(Effect.sleep(every)),
  Effect.forever,
  Effect.forkScoped
)
