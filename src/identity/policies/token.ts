// Tokens of servers that publish. An operator makes them with `bellcast token`; the bucket
// `permissions` has the hash of each. Here are their form, their verification, the record of their
// last use, and the metrics of their ends.
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

/** Tokens of the policy `token` begin so. They go to no other policy, even where it is off. */
export const ownTokenPrefix = "bellcast_"

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
const base = BigInt(digits.length)
/** 62^43 > 2^256, and 62^6 > 2^32. */
const randomLength = 43
const checksumLength = 6

/**
 * `bellcast_`, 32 random bytes in base62, and a checksum. Secret scanners find tokens by the
 * prefix, and the checksum tells them from other texts and shows typing errors without a look-up.
 * Tokens of GitHub and npm have the same form.
 */
const tokenForm = new RegExp(
  `^${ownTokenPrefix}([0-9A-Za-z]{${randomLength}})([0-9A-Za-z]{${checksumLength}})$`
)

/** Whether a text has the form of a token and the right checksum. */
export const isOwnToken = (text: string): boolean => {
  const [, random = "", checksum] = tokenForm.exec(text) ?? []
  return checksum === checksumOf(random)
}

export const freshToken = (): string => tokenOf(randomBytes(32))

/** The token of 32 random bytes. */
export const tokenOf = (bytes: Uint8Array): string => {
  const random = base62(BigInt(`0x${Buffer.from(bytes).toString("hex")}`), randomLength)
  return ownTokenPrefix + random + checksumOf(random)
}

/** The CRC-32 of the random digits. */
const checksumOf = (random: string): string => base62(BigInt(crc32(random)), checksumLength)

/** In base62, filled up with zeros. */
const base62 = (value: bigint, length: number): string => {
  let text = ""
  for (let rest = value; rest > 0n; rest /= base) text = digits[Number(rest % base)] + text
  return text.padStart(length, "0")
}

/**
 * The stored hash of a token. One round of SHA-256 suffices: slow hashes with a salt protect
 * passwords, which people choose; nobody guesses 256 random bits.
 */
export const hashOfToken = (token: string): string =>
  createHash("sha256").update(token).digest("base64url")

const dayMillis = 24 * 3_600_000
/** Tokens whose use of today is known to be recorded. */
const recordedMax = 10_000
const useTimeout = "5 seconds"

/**
 * A function that records the day of the last use of each token, in the bucket `cache`, without
 * waiting: one write a token and day. A failure of the bucket never fails a request.
 */
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
      ? Effect.forkIn(Effect.ignore(Effect.timeout(record(hash, now), useTimeout)), scope)
      : Effect.void
})

/** The day of a time, in UTC: `2026-11-22`. */
const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

const expiryEvery = "15 seconds"

/**
 * Shows as metrics when each token ends, so that its operator is told before: from then on the
 * requests of its server get 401.
 */
const showTokenExpiry = Effect.gen(function* () {
  const buckets = yield* Buckets
  let isWarned = false
  const show = Effect.gen(function* () {
    const entries = yield* buckets.getMany("permissions", [keys.tokens], 0)
    if (entries !== undefined) return showTokens(expiriesOf(entries.map(({ value }) => value)))
    if (isWarned) return
    isWarned = true
    yield* Effect.logWarning("metrics cannot show when tokens end: there are more than 1,024")
  })
  const rounds = Effect.forever(Effect.andThen(Effect.ignore(show), Effect.sleep(expiryEvery)))
  yield* Effect.forkScoped(rounds)
})

/** The newest token of each name, but for those that were revoked or never end. */
const expiriesOf = (tokens: ReadonlyArray<AccessToken>) => {
  const newest = new Map(
    [...tokens].sort((a, b) => a.createdAt - b.createdAt).map((each) => [each.name, each])
  )
  return [...newest.values()].flatMap(({ expiresAt, name, revokedAt }) =>
    expiresAt === undefined || revokedAt !== undefined ? [] : [{ expiresAt, name }]
  )
}
