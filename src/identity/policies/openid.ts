// Access tokens that are JWTs of an OpenID Connect issuer (RFC 9068), verified here with the keys
// that the issuer publishes.
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Values } from "#settings/every-setting.ts"
import { checkedText, someWords, words } from "#settings/values.ts"
import { openidPages } from "../login/openid-login.ts"
import { hostPatternFault } from "../login/pages.ts"
import { bearerPolicy, type Policy } from "../policy.ts"
import { hostOf, makeSend, providerUrlFault, type Send } from "../provider/client.ts"
import { type KeySet, makeKeySet } from "../provider/key-set.ts"
import {
  type Claims,
  claimPathFault,
  coversAll,
  isForUs,
  knownAt,
  textsOf,
  timeFault
} from "../tokens/claims.ts"
import { claimsOfIssuer, headerOf, isMeantFor } from "../tokens/jwt.ts"
import {
  IdentityUnavailable,
  type Invalid,
  insufficientScope,
  invalidBecause,
  type Verdict,
  type VerifyToken
} from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"

export const openidSettings = (prefix: string) => ({
  /** The issuer, as its tokens and its discovery document name it. */
  issuer: checkedText(`${prefix}_ISSUER`, providerUrlFault),
  /** Audiences of which a token must name one. `*`: no check. */
  audience: someWords(`${prefix}_AUDIENCE`),
  /** Scopes that a token must have, all of them. */
  requiredScopes: words(`${prefix}_REQUIRED_SCOPES`),
  /** The claim that is the user's id. */
  useridField: checkedText(`${prefix}_USERID_FIELD`, claimPathFault).pipe(
    Config.withDefault("sub")
  ),
  /** Claims whose texts become principals `group:<policy>:<text>`. */
  groupFields: words(`${prefix}_GROUP_FIELDS`, claimPathFault),
  /** Whether claims that the token lacks are asked of the issuer's userinfo endpoint. */
  userinfo: Config.Boolean(`${prefix}_USERINFO`).pipe(Config.withDefault(false)),
  /** Our client at the issuer, for the login pages. Unset: none. */
  clientId: Config.option(Config.String(`${prefix}_CLIENT_ID`)),
  /** Unset: a public client. */
  clientSecret: Config.option(Config.Redacted(`${prefix}_CLIENT_SECRET`)),
  /** Hosts of pages to which a login may return: shell patterns. */
  callbackHosts: words(`${prefix}_CALLBACK_HOSTS`, hostPatternFault),
  /** Scopes that a login asks for. None: `openid` and the required scopes. */
  loginScopes: words(`${prefix}_LOGIN_SCOPES`),
  /** More parameters of a login, as `name=value`. */
  loginParameters: words(`${prefix}_LOGIN_PARAMETERS`, parameterFault)
})

type OpenidSettings = Values<ReturnType<typeof openidSettings>>

const parameterFault = (text: string) =>
  /^[A-Za-z_]+=./.test(text) ? undefined : "Expected a parameter such as audience=https://..."

/** Marks of ID tokens (OpenID Connect Core sections 3.1.3.6 and 3.3.2.11). */
const idTokenClaims = ["at_hash", "c_hash", "s_hash"]

const noAccessToken = invalidBecause("the token is no plain bearer access token")

export const openid = Effect.fnUntraced(function* (name: string, settings: OpenidSettings) {
  const { audience, issuer } = settings
  const send = yield* makeSend(name, [hostOf(issuer)])
  const keySet = yield* makeKeySet(name, issuer, send)
  const verified = (yield* Verifications).make({
    policy: name,
    context: contextOf(settings),
    // A verification costs no request, but for userinfo.
    isShared: settings.userinfo,
    verify: Effect.fnUntraced(function* (token: string) {
      const signed = yield* claimsOfIssuer(token, keySet)
      if (typeof signed === "string") return invalidBecause(signed)
      if (hasNonceOfIdToken(signed, token)) return noAccessToken
      const fault = faultOf(signed, settings, yield* Clock.currentTimeMillis)
      if (fault !== undefined) return fault
      if (!settings.userinfo) return userOf(signed, settings)
      const claims = yield* withUserinfo(name, token, signed, keySet, send)
      if (claims === undefined) return invalidBecause("the issuer's userinfo refuses the token")
      return userOf(claims, settings)
    })
  })
  const pages = yield* pagesOf(name, settings, verified, keySet, send)
  const policy: Policy = {
    ...bearerPolicy(
      name,
      "Access tokens of an OpenID Connect issuer.",
      "https://www.rfc-editor.org/rfc/rfc9068",
      verified
    ),
    bearer: { kind: "local", isFor: (token) => isMeantFor(token, issuer, audience) },
    waits: true,
    isUp: keySet.isUp,
    ...(pages && { pages })
  }
  return policy
})

/** The verdict on the claims of a token whose signature is right, at a time in milliseconds. */
export const openidVerdict = (claims: Claims, settings: OpenidSettings, now: number): Verdict =>
  faultOf(claims, settings, now) ?? userOf(claims, settings)

/** The settings on which a verdict depends. */
const contextOf = (settings: OpenidSettings): string => {
  const { audience, groupFields, issuer, requiredScopes, useridField, userinfo } = settings
  const groups = [groupFields, requiredScopes, useridField, userinfo]
  return JSON.stringify([issuer, audience, ...groups])
}

/**
 * Whether claims are those of a bearer access token. Keycloak writes `typ: ID` into ID tokens,
 * whose header is like that of access tokens. A token with `cnf` is bound to a key that nobody
 * proves here.
 */
const isAccessToken = (claims: Claims): boolean => {
  const { typ } = claims
  const isBearer = typ === undefined || (typeof typ === "string" && typ.toLowerCase() === "bearer")
  return (
    isBearer &&
    !Object.hasOwn(claims, "cnf") &&
    !idTokenClaims.some((name) => Object.hasOwn(claims, name))
  )
}

/** Why a token whose signature is right is not accepted, at a time in milliseconds. */
const faultOf = (
  claims: Claims,
  { audience, issuer, requiredScopes }: OpenidSettings,
  now: number
): Invalid | undefined => {
  const { aud, exp, iss, scope, scp } = claims
  if (iss !== issuer) return invalidBecause("iss names another issuer")
  if (typeof exp !== "number") return invalidBecause("exp is missing")
  const late = timeFault(claims, now)
  if (late !== undefined) return invalidBecause(late)
  if (!isForUs(aud, audience)) return invalidBecause("aud does not name this service")
  if (!isAccessToken(claims)) return noAccessToken
  // Entra and Okta call the claim `scp`.
  return coversAll(textsOf(scope ?? scp), requiredScopes) ? undefined : insufficientScope
}

/** The user whom the claims of a valid token name. */
const userOf = (claims: Claims, { groupFields, useridField }: OpenidSettings): Verdict =>
  knownAt(claims, useridField, groupFields)

/**
 * Whether a nonce shows that a token is an ID token. Some issuers copy it into access tokens, which
 * then say by their type what they are.
 */
export const hasNonceOfIdToken = (claims: Claims, token: string): boolean => {
  const type = headerOf(token)?.["typ"]
  const isTyped = typeof type === "string" && /^(application\/)?at\+jwt$/i.test(type)
  return Object.hasOwn(claims, "nonce") && claims["typ"] === undefined && !isTyped
}

/**
 * The claims of a token, and those of userinfo that it lacks. `email_verified` is about the `email`
 * beside it, and must not vouch for that of the other.
 */
const merged = (claims: Claims, info: Claims): Claims => {
  const isPair = Object.hasOwn(claims, "email") && Object.hasOwn(claims, "email_verified")
  const { email, email_verified } = isPair ? claims : info
  return { ...info, ...claims, email, email_verified }
}

/** The issuer's userinfo, added to the claims of the token; undefined: it refuses the token. */
const withUserinfo = Effect.fnUntraced(function* (
  policy: string,
  token: string,
  claims: Claims,
  keySet: KeySet,
  send: Send
) {
  const unavailable = (cause: string) => new IdentityUnavailable({ policy, cause })
  const { userinfo_endpoint: url } = (yield* keySet.current).discovered
  if (url === undefined) return yield* unavailable("the issuer has no userinfo endpoint")
  const headers = { authorization: `Bearer ${token}` }
  const { json, status } = yield* send({ url, headers })
  if (status === 401 || status === 403) return undefined
  if (status !== 200 || json === undefined) return yield* unavailable(`userinfo: status ${status}`)
  // OpenID Connect Core section 5.3.2: userinfo of another user must not be used.
  return json["sub"] === claims["sub"] ? merged(claims, json) : undefined
})

/** The login pages, if there is a client for them. */
const pagesOf = Effect.fnUntraced(function* (
  name: string,
  settings: OpenidSettings,
  verified: VerifyToken,
  keySet: KeySet,
  send: Send
) {
  const { audience, callbackHosts, clientSecret, issuer, loginParameters, loginScopes } = settings
  const clientId = Option.getOrUndefined(settings.clientId)
  if (clientId === undefined) return undefined
  const scopes = loginScopes.length > 0 ? loginScopes : ["openid", ...settings.requiredScopes]
  const client = { clientId, clientSecret, callbackHosts, scopes, parameters: loginParameters }
  return yield* openidPages({ name, issuer, audience, ...client, verified }, keySet, send)
})
