// Verifies JWTs with public keys: signature, algorithm and header. Says nothing about claims.
import type { KeyObject } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type CryptoKey, createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose"
import { jsonObjectOf } from "#basics/json.ts"
import type { IssuerKeys, KeySet } from "../provider/key-set.ts"
import { type Claims, isForUs, lateFault } from "./claims.ts"

/** Algorithms with a public key. HMAC and `none` are never among them. */
const asymmetricAlgorithms =
  "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ")

/**
 * Types of access tokens (RFC 9068 section 2.1). Many issuers write the type of any JWT; tokens for
 * other uses, such as logout+jwt, have types of their own.
 */
const accessTokenTypes = ["at+jwt", "application/at+jwt", "jwt"]

/** A header must not bring its own key, nor demand what nobody here understands. */
const refusedInHeader = ["crit", "jwk", "jku", "x5u"]

const unknownKey = "the issuer has no such key"
export const wrongSignature = "the signature is wrong"

const kidCharsMax = 200

const toleranceSeconds = 5

/**
 * The claims of a token by the issuer's keys, or what is wrong. An issuer chooses its algorithms
 * itself, and no key fits an algorithm of another kind, so all with a public key are accepted.
 */
export const claimsOfIssuer = Effect.fnUntraced(function* (
  token: string,
  keySet: KeySet,
  algorithms: ReadonlyArray<string> = asymmetricAlgorithms
) {
  const verify = ({ keys }: IssuerKeys) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      verifyJwt(token, { keySet: keys }, algorithms, now)
    )
  const first = yield* verify(yield* keySet.current)
  const kid = kidOf(token)
  // The issuer may have a new key. Without a `kid` a former key fits, and only the signature tells.
  const mayBeNew = first === unknownKey || (first === wrongSignature && kid === "")
  return mayBeNew ? yield* verify(yield* keySet.refreshed(kid)) : first
})

/** A key that verifies, or a set from which the token's `kid` chooses. */
type VerifyingKey = CryptoKey | KeyObject | Uint8Array | { readonly keySet: JSONWebKeySet }

/**
 * The claims of a token whose signature is right, at a time in milliseconds, or what is wrong. Of a
 * set, the key of the token's `kid` counts; for a token without one, each key that fits.
 */
export const verifyJwt = (
  token: string,
  key: VerifyingKey,
  algorithms: ReadonlyArray<string>,
  now: number
): Effect.Effect<Claims | string> => {
  if (!hasOneSpelling(token)) return Effect.succeed("the token cannot be read")
  if (!isUsableHeader(headerOf(token))) return Effect.succeed("the header is not accepted")
  // The exact end of the token is checked by the policy; see timeFault in claims.ts.
  const options = {
    algorithms: [...algorithms],
    currentDate: new Date(now),
    clockTolerance: toleranceSeconds
  }
  const keyOf = "keySet" in key ? createLocalJWKSet(key.keySet) : async () => key
  const verify = async (): Promise<Claims> => {
    try {
      return (await jwtVerify(token, keyOf, options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      for await (const each of error) {
        const verified = await jwtVerify(token, each, options).catch(unlessSigned)
        if (verified !== undefined) return verified.payload
      }
      throw new errors.JWSSignatureVerificationFailed()
    }
  }
  return Effect.promise(() => verify().catch(faultOf))
}

const isUsableHeader = (header: Claims | undefined): boolean => {
  if (header === undefined || refusedInHeader.some((name) => Object.hasOwn(header, name)))
    return false
  const { typ } = header
  return (
    typ === undefined || (typeof typ === "string" && accessTokenTypes.includes(typ.toLowerCase()))
  )
}

/**
 * Whether a token is written as RFC 7515 section 2 demands. Decoders take other characters and
 * padding, too, so a valid token would have thousands of spellings: each would be verified, and
 * remembered in the place of somebody else's.
 */
const hasOneSpelling = (token: string): boolean =>
  token.split(".").every((part) => Buffer.from(part, "base64url").toString("base64url") === part)

/** The name of a token's key; "" without one. A longer one only counts by its beginning. */
const kidOf = (token: string): string => {
  const kid = headerOf(token)?.["kid"]
  return typeof kid === "string" ? kid.slice(0, kidCharsMax) : ""
}

/** Throws what is wrong with a token if its signature is right. */
const unlessSigned = (error: unknown): undefined => {
  if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed)
    throw error
}

/** Why a token is not believed, for the developer who sent it. */
const faultOf = (error: unknown): string => {
  if (error instanceof errors.JWKSNoMatchingKey) return unknownKey
  if (error instanceof errors.JWTExpired) return lateFault
  if (error instanceof errors.JWTClaimValidationFailed) return "nbf or exp is wrong"
  if (error instanceof errors.JOSEAlgNotAllowed) return "the algorithm is not accepted"
  if (error instanceof errors.JWSSignatureVerificationFailed) return wrongSignature
  return "the token cannot be read"
}

/** The header of a token. */
export const headerOf = (token: string): Claims | undefined => partOf(token, 0)
/** The claims of a token, which nobody has verified. */
export const claimsOf = (token: string): Claims | undefined => partOf(token, 1)

/** The members of a part of a JWT, without a check of its signature; undefined: no JWT. */
const partOf = (token: string, part: 0 | 1): Claims | undefined => {
  const parts = token.split(".")
  return parts.length === 3
    ? jsonObjectOf(Buffer.from(parts[part]!, "base64url").toString("utf8"))
    : undefined
}

/** Whether a token names this issuer (undefined: none) and one of these audiences. */
export const isMeantFor = (
  token: string,
  issuer: string | undefined,
  audience: ReadonlyArray<string>
): boolean => {
  const claims = claimsOf(token)
  return claims !== undefined && claims["iss"] === issuer && isForUs(claims["aud"], audience)
}
