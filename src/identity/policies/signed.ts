// Users of a site with a login of its own: the site's backend signs the user's id as a short JWT,
// with a shared secret (HS256) or a private key (ES256, EdDSA), and its page sends the JWT.
import { createPublicKey, type KeyObject } from "node:crypto"
import { readFileSync } from "node:fs"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { settingsFault, type Values } from "#settings/every-setting.ts"
import { secretBytesMin, someWords, words } from "#settings/values.ts"
import { makeLinks } from "../login/links.ts"
import { bearerPolicy, type Policy } from "../policy.ts"
import { settingPrefix } from "../settings.ts"
import { type Claims, isForUs, knownAt, timeFault } from "../tokens/claims.ts"
import { isMeantFor, verifyJwt, wrongSignature } from "../tokens/jwt.ts"
import { invalidBecause, type Verdict } from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"

/** A token is made for a page view. A longer life would outlast a logout by days. */
export const lifeMillisMax = 24 * 3_600_000
/** A session of the console that was ended works so long where a gateway has verified it. */
const sessionVerdictMillis = 500
/** The clock of the site's backend may be ahead. */
const skewMillis = 60_000

export const signedSettings = (prefix: string) => ({
  /**
   * Shared secrets of at least 32 bytes, separated by blanks. Several while one replaces another;
   * `bellcast sign-user` signs with the first.
   */
  secrets: Config.option(Config.Redacted(`${prefix}_SECRETS`)),
  /** Files with public keys (PEM): P-256 for ES256, Ed25519 for EdDSA. */
  publicKeyFiles: words(`${prefix}_PUBLIC_KEY_FILES`),
  /** The `aud` of tokens that are made for this service. */
  audience: someWords(`${prefix}_AUDIENCE`, (word) =>
    word === "*" ? "Expected a name for this service" : undefined
  )
})

type SignedSettings = Values<ReturnType<typeof signedSettings>>

/** Faults of the settings themselves. Files are read by the processes that verify. */
export const signedFaults = (
  name: string,
  { publicKeyFiles, secrets }: SignedSettings
): ReadonlyArray<string> => {
  const prefix = settingPrefix(name)
  const shared = secretsOf(secrets)
  if (shared.length + publicKeyFiles.length === 0)
    return [`${prefix}_SECRETS, ${prefix}_PUBLIC_KEY_FILES: Expected one of them`]
  return shared.some((secret) => Buffer.byteLength(secret) < secretBytesMin)
    ? [`${prefix}_SECRETS: Expected at least ${secretBytesMin} bytes for each`]
    : []
}

/** The shared secrets of a setting. */
export const secretsOf = (secrets: SignedSettings["secrets"]): ReadonlyArray<string> =>
  Option.match(secrets, { onNone: () => "", onSome: Redacted.value })
    .split(/\s+/)
    .filter((secret) => secret !== "")

/** A key, and the one algorithm that it is for: a public key must never serve as a secret. */
interface SigningKey {
  readonly key: KeyObject | Uint8Array
  readonly algorithms: ReadonlyArray<string>
}

export const signed = Effect.fnUntraced(function* (name: string, settings: SignedSettings) {
  const keys = yield* keysOf(settingPrefix(name), settings)
  const verified = (yield* Verifications).make({
    policy: name,
    context: settings.audience.join(" "),
    verify: Effect.fnUntraced(function* (token: string) {
      const now = yield* Clock.currentTimeMillis
      const claims = yield* claimsBy(keys, token, now)
      return typeof claims === "string" ? invalidBecause(claims) : verdictOf(claims, settings, now)
    })
  })
  const isFor = (token: string) => isMeantFor(token, undefined, settings.audience)
  const links = yield* makeLinks(name, {
    isFor,
    claimsOf: (token, now) => claimsBy(keys, token, now),
    verdictOf: (claims, now) => verdictOf(claims, settings, now)
  })
  const sessionVerified = (yield* Verifications).make({
    policy: name,
    context: "console",
    lifetimeMillis: sessionVerdictMillis,
    verify: links.find
  })
  const policy: Policy = {
    ...bearerPolicy(
      name,
      "User ids that the site's backend signed.",
      "https://www.rfc-editor.org/rfc/rfc7519",
      (token, asker) => (links.isForSession(token) ? sessionVerified : verified)(token, asker)
    ),
    // Tokens of an OpenID Connect issuer name it.
    bearer: { kind: "local", isFor: (token) => links.isForSession(token) || isFor(token) },
    waits: true,
    links
  }
  return policy
})

/** The claims of a token that one of the keys verifies, or what is wrong. */
const claimsBy = Effect.fnUntraced(function* (
  keys: ReadonlyArray<SigningKey>,
  token: string,
  now: number
) {
  let fault = wrongSignature
  for (const { algorithms, key } of keys) {
    const claims = yield* verifyJwt(token, key, algorithms, now)
    if (typeof claims !== "string") return claims
    if (claims !== wrongSignature) fault = claims
  }
  return fault
})

const verdictOf = (claims: Claims, { audience }: SignedSettings, now: number): Verdict => {
  const { aud, exp } = claims
  if (typeof exp !== "number") return invalidBecause("exp is missing")
  const late = timeFault(claims, now)
  if (late !== undefined) return invalidBecause(late)
  if (exp * 1000 > now + lifeMillisMax + skewMillis)
    return invalidBecause("exp is more than a day away")
  if (!isForUs(aud, audience)) return invalidBecause("aud does not name this service")
  return knownAt(claims, "sub", ["groups"])
}

const keysOf = Effect.fnUntraced(function* (prefix: string, settings: SignedSettings) {
  const { publicKeyFiles, secrets } = settings
  const files = publicKeyFiles.map(publicKeyOf)
  // The text may be a key itself: never quote it.
  const faults = files.flatMap((key, i) =>
    key === undefined
      ? `${prefix}_PUBLIC_KEY_FILES (item ${i + 1}): ` +
        "Expected the path of a file with a public key (PEM), P-256 or Ed25519"
      : []
  )
  if (faults.length > 0) return yield* settingsFault(faults)
  const shared = secretsOf(secrets).map(
    (secret): SigningKey => ({ key: Buffer.from(secret, "utf8"), algorithms: ["HS256"] })
  )
  return [...shared, ...files.filter((key) => key !== undefined)]
})

const publicKeyOf = (file: string): SigningKey | undefined => {
  try {
    const key = createPublicKey(readFileSync(file, "utf8"))
    if (key.asymmetricKeyType === "ed25519") return { key, algorithms: ["EdDSA", "Ed25519"] }
    const isP256 = key.asymmetricKeyDetails?.namedCurve === "prime256v1"
    return isP256 ? { key, algorithms: ["ES256"] } : undefined
  } catch {
    return undefined
  }
}
