// OAuth 2.0 bearer tokens that a server verifies: by introspection (RFC 7662), or by the verify
// call of an external-account provider (contract section 7.4).
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Values } from "#settings/every-setting.ts"
import { checkedText, words } from "#settings/values.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { bearerPolicy, type Policy } from "../policy.ts"
import {
  type ClientLogin,
  hostOf,
  makeClientLogin,
  makeSend,
  type ProviderResponse,
  providerUrlFault,
  type Send
} from "../provider/client.ts"
import { settingPrefix } from "../settings.ts"
import {
  type Claims,
  claimPathFault,
  coversAll,
  isForUs,
  knownAt,
  textsOf,
  timeFault
} from "../tokens/claims.ts"
import { IdentityUnavailable, insufficientScope, invalidBecause, type Verdict } from "../verdict.ts"
import { Verifications } from "../verification/verifications.ts"

export const oauthSettings = (prefix: string) => ({
  /** The introspection endpoint (RFC 7662) of the authorization server. */
  introspectionUrl: Config.option(checkedText(`${prefix}_INTROSPECTION_URL`, providerUrlFault)),
  /** Instead: the verify call of an external-account provider, `/v1/verify`. */
  verifyUrl: Config.option(checkedText(`${prefix}_VERIFY_URL`, providerUrlFault)),
  /** Our own login at the introspection endpoint: by secret, or by a private key (PEM). */
  clientId: Config.option(Config.String(`${prefix}_CLIENT_ID`)),
  clientSecret: Config.option(Config.Redacted(`${prefix}_CLIENT_SECRET`)),
  clientKeyFile: Config.option(Config.String(`${prefix}_CLIENT_KEY_FILE`)),
  /** Audiences, or clients, whose tokens are accepted. */
  audience: words(`${prefix}_AUDIENCE`),
  /** Scopes that a token must have, all of them. */
  requiredScopes: words(`${prefix}_REQUIRED_SCOPES`),
  /** The member of the response that is the user's id. */
  useridField: checkedText(`${prefix}_USERID_FIELD`, claimPathFault).pipe(
    Config.withDefault("sub")
  ),
  /** Members whose texts become principals `group:<policy>:<text>`, such as `scope`. */
  groupFields: words(`${prefix}_GROUP_FIELDS`, claimPathFault)
})

type OauthSettings = Values<ReturnType<typeof oauthSettings>>

/** Contradictions between settings that are each valid. */
export const oauthFaults = (name: string, settings: OauthSettings): ReadonlyArray<string> => {
  const { clientId, clientKeyFile, clientSecret, introspectionUrl, requiredScopes, verifyUrl } =
    settings
  const prefix = settingPrefix(name)
  if (Option.isSome(introspectionUrl) === Option.isSome(verifyUrl))
    return [`${prefix}_INTROSPECTION_URL, ${prefix}_VERIFY_URL: Expected one of them`]
  if (Option.isSome(verifyUrl))
    return requiredScopes.length === 0
      ? [`${prefix}_REQUIRED_SCOPES: Expected the scopes that a token must have`]
      : []
  if (Option.isNone(clientId) || Option.isSome(clientSecret) === Option.isSome(clientKeyFile))
    return [
      `${prefix}_CLIENT_ID: Expected our login at the introspection endpoint: the id, and ` +
        `${prefix}_CLIENT_SECRET or ${prefix}_CLIENT_KEY_FILE`
    ]
  return []
}

export const oauth = Effect.fnUntraced(function* (name: string, settings: OauthSettings) {
  const { ask, claimsOf, isUp, url } = yield* shapeOf(name, settings)
  const { audience, groupFields, requiredScopes, useridField } = settings
  const warn = makeRateLimitedLog(
    `the policy ${name} cannot verify tokens (a 401 or 403 is about our own login)`,
    Effect.logError
  )
  const verified = (yield* Verifications).make({
    policy: name,
    context: JSON.stringify([url, audience, groupFields, requiredScopes, useridField]),
    isShared: true,
    verify: Effect.fnUntraced(function* (token: string) {
      const response = yield* ask(token)
      const claims = claimsOf(response)
      if (claims === undefined) return invalidBecause("the authorization server refuses the token")
      if (claims !== "unusable") return verdictOf(claims, settings, yield* Clock.currentTimeMillis)
      yield* warn({ status: response.status })
      return yield* new IdentityUnavailable({ policy: name, cause: `status ${response.status}` })
    })
  })
  const policy: Policy = {
    ...bearerPolicy(
      name,
      "OAuth 2.0 bearer tokens, verified by the server that issued them.",
      "https://www.rfc-editor.org/rfc/rfc7662",
      verified
    ),
    bearer: { kind: "remote" },
    waits: true,
    isUp: Effect.orElseSucceed(isUp, () => false)
  }
  return policy
})

const verdictOf = (
  claims: Claims,
  { audience, groupFields, requiredScopes, useridField }: OauthSettings,
  now: number
): Verdict => {
  const { scope, token_type } = claims
  // A token with `cnf` is bound to a key that nobody proves here (RFC 8705 section 3.2).
  const isPlainBearer = isBearer(token_type) && !Object.hasOwn(claims, "cnf")
  const late = timeFault(claims, now)
  if (late !== undefined) return invalidBecause(late)
  if (!isPlainBearer) return invalidBecause("the token is no plain bearer access token")
  if (!isIssuedForUs(claims, audience)) return invalidBecause("aud does not name this service")
  if (!coversAll(textsOf(scope), requiredScopes)) return insufficientScope
  return knownAt(claims, useridField, groupFields)
}

const isBearer = (tokenType: unknown): boolean =>
  tokenType === undefined ||
  (typeof tokenType === "string" && ["bearer", "access_token"].includes(tokenType.toLowerCase()))

/** Whether a token was issued for us: for our audience, or to a client that counts as one. */
const isIssuedForUs = ({ aud, client_id }: Claims, audience: ReadonlyArray<string>): boolean =>
  audience.length === 0 || isForUs(aud, audience) || isForUs(client_id, audience)

/** One of the two shapes of requests. */
interface Shape {
  readonly url: string
  readonly ask: (token: string) => Effect.Effect<ProviderResponse, IdentityUnavailable>
  /** The claims of a response; undefined: the token is not valid; `unusable`: neither. */
  readonly claimsOf: (response: ProviderResponse) => Claims | undefined | "unusable"
  readonly isUp: Effect.Effect<boolean, IdentityUnavailable>
}

const shapeOf = Effect.fnUntraced(function* (name: string, settings: OauthSettings) {
  const prefix = settingPrefix(name)
  const url = Option.getOrElse(settings.introspectionUrl, () =>
    Option.getOrThrow(settings.verifyUrl)
  )
  const send = yield* makeSend(name, [hostOf(url)])
  if (Option.isSome(settings.verifyUrl)) return verifyCall(url, send)
  return introspection(url, send, yield* makeClientLogin(name, prefix, url, settings))
})

/** Introspection (RFC 7662) at a URL. */
export const introspection = (url: string, send: Send, login: ClientLogin): Shape => {
  const ask = (token: string) =>
    send({ url, login, form: { token, token_type_hint: "access_token" } })
  return {
    url,
    ask,
    claimsOf: ({ json, status }) => {
      // 401 and 403 are about our own login, and 429 about our requests.
      if (status >= 400 && status < 500)
        return [401, 403, 429].includes(status) || json === undefined ? "unusable" : undefined
      const active = status === 200 ? json?.["active"] : undefined
      return active === true ? json : active === false ? undefined : "unusable"
    },
    isUp: Effect.map(ask("heartbeat"), ({ status }) => status === 200)
  }
}

const verifyCall = (configured: string, send: Send): Shape => {
  const url = /\/v1\/verify$/.test(configured)
    ? configured
    : `${configured.replace(/\/$/, "")}/v1/verify`
  return {
    url,
    ask: (token) => send({ url, json: { token } }),
    claimsOf: ({ json, status }) => {
      if (json === undefined) return "unusable"
      if (status >= 400 && status < 500) return status === 429 ? "unusable" : undefined
      const { client_id, scope, user } = json
      const isComplete =
        typeof user === "string" && typeof client_id === "string" && Array.isArray(scope)
      return status === 200 && isComplete ? { ...json, sub: user, aud: client_id } : "unusable"
    },
    isUp: Effect.map(
      send({ url: `${new URL(url).origin}/__heartbeat__` }),
      ({ status }) => status >= 200 && status < 300
    )
  }
}
