// The login pages of an OpenID Connect issuer, for sites whose pages have no token of their own:
// authorization code with PKCE (RFC 6749 section 4.1, RFC 7636).
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { makeRate } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import type { Send } from "../provider/client.ts"
import { bySecret, type ClientLogin } from "../provider/client.ts"
import type { Discovered, KeySet } from "../provider/key-set.ts"
import { IdentitySettings } from "../settings.ts"
import { partiesOf } from "../tokens/claims.ts"
import { claimsOf } from "../tokens/jwt.ts"
import type { VerifyToken } from "../verdict.ts"
import { IdentityUnavailable, identificationMillis, TooManyFailures } from "../verdict.ts"
import { makeBrowserStates } from "./browser-state.ts"
import { type OpenidPages, redirectFault, type Visit, withToken, wrongField } from "./pages.ts"

export interface OpenidLogin {
  readonly name: string
  readonly issuer: string
  /** The audiences of the tokens that the policy accepts. */
  readonly audience: ReadonlyArray<string>
  readonly clientId: string
  /** None: a public client, which proves itself by PKCE alone. */
  readonly clientSecret: Option.Option<Redacted.Redacted<string>>
  readonly callbackHosts: ReadonlyArray<string>
  readonly scopes: ReadonlyArray<string>
  /** More parameters of the authorization request: `name=value`. */
  readonly parameters: ReadonlyArray<string>
  /** Whether the policy accepts a token. */
  readonly verified: VerifyToken
}

const addressesMax = 20_000

export const openidPages = Effect.fnUntraced(function* (
  login: OpenidLogin,
  keySet: KeySet,
  send: Send
) {
  const { audience, callbackHosts, issuer, name, verified } = login
  const states = yield* makeBrowserStates(name, "Lax")
  const { authFailuresPerAddressPerMinuteMax } = yield* IdentitySettings
  const attempts = makeAttempts(authFailuresPerAddressPerMinuteMax)

  const begin = Effect.fnUntraced(function* (visit: Visit) {
    const { callback = "" } = visit.fields
    const description = redirectFault(callback, callbackHosts, visit.consoleUrl)
    if (description !== undefined) return yield* wrongField("callback", description)
    const { authorization_endpoint: endpoint } = (yield* keySet.current).discovered
    if (endpoint === undefined)
      return yield* new IdentityUnavailable({ policy: name, cause: "no authorization endpoint" })
    const { nonce, setCookie } = yield* states.begin(callback)
    const verifier = states.secretOf({ nonce })
    return { location: issuerUrl(login, endpoint, visit, nonce, verifier), setCookie }
  })

  /** The state of the browser's cookie, if the issuer returns to this login. */
  const stateOf = Effect.fnUntraced(function* ({ cookies, fields }: Visit) {
    const { iss, state } = fields
    const begun = yield* states.read(cookies)
    if (state !== begun.nonce) return yield* states.failed("state", "invalid_request")
    return [undefined, issuer].includes(iss) ? begun : yield* states.failed("iss", "server_error")
  })

  const finish = Effect.fnUntraced(function* (visit: Visit) {
    const { address, fields, rootUrl } = visit
    const state = yield* stateOf(visit)
    const { code, error, iss } = fields
    if (error !== undefined) return yield* states.refused(error)
    if (code === undefined) return yield* wrongField("code", "Required")
    const { discovered } = yield* keySet.current
    if (lacksIss(discovered, iss)) return yield* states.failed("iss", "server_error")
    yield* attempts.admit(address)
    yield* states.spend(state)
    // A code can be such that the issuer's server fails: so that counts like a wrong one.
    const token = yield* exchange(login, send, discovered, {
      code,
      redirect_uri: redirectUri(rootUrl, name),
      code_verifier: states.secretOf(state)
    }).pipe(Effect.tapError(() => attempts.failed(address)))
    if (token === undefined) {
      yield* attempts.failed(address)
      return yield* states.failed("code", "invalid_request")
    }
    const verdict = yield* verified(token, { address, patienceMillis: identificationMillis })
    if (verdict._tag === "Known")
      return { location: withToken(state.redirect, token), setCookie: states.cleared }
    yield* attempts.failed(address)
    const fault = verdict.description ?? verdict.error
    return yield* states.failed(`access token: ${fault}`, "server_error", {
      expected: partiesOf({ iss: issuer, aud: audience }),
      found: partiesOf(claimsOf(token) ?? {})
    })
  })
  return { at: "openid", begin, finish, returnOf: states.returnOf } satisfies OpenidPages
})

/** Bounds requests to the token endpoint that bring nothing. */
export const makeAttempts = (max: number) => {
  const failures = makeRate(max, 60_000, addressesMax)
  return {
    admit: Effect.fnUntraced(function* (address: string) {
      const waitMillis = failures.wait(address, yield* monotonicMillis)
      if (waitMillis > 0) return yield* new TooManyFailures({ waitMillis })
    }),
    failed: (address: string) =>
      Effect.map(monotonicMillis, (now) => void failures.take(address, now))
  }
}

/** The issuer's page for a login. `verifier`: of PKCE. */
const issuerUrl = (
  { clientId, name, parameters, scopes }: OpenidLogin,
  endpoint: string,
  { fields, rootUrl }: Visit,
  state: string,
  verifier: string
): string => {
  const url = new URL(endpoint)
  const ours = {
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri(rootUrl, name),
    scope: scopes.join(" "),
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...(fields["prompt"] === "none" && { prompt: "none" })
  }
  for (const parameter of parameters) {
    const [parameterName = "", ...value] = parameter.split("=")
    url.searchParams.set(parameterName, value.join("="))
  }
  for (const [parameterName, value] of Object.entries(ours))
    url.searchParams.set(parameterName, value)
  return url.href
}

const redirectUri = (rootUrl: string, name: string) => `${rootUrl}/openid/${name}/token`

/** Trades a code for an access token; undefined: the code is not valid. */
const exchange = Effect.fnUntraced(function* (
  login: OpenidLogin,
  send: Send,
  { token_endpoint: url }: Discovered,
  form: Readonly<Record<"code" | "redirect_uri" | "code_verifier", string>>
) {
  const unavailable = (cause: string) => new IdentityUnavailable({ policy: login.name, cause })
  if (url === undefined) return yield* unavailable("no token endpoint")
  const grant = { grant_type: "authorization_code", ...form }
  const request = { url, login: clientOf(login), form: grant, isSingle: true } as const
  const { json, status } = yield* send(request)
  const { access_token: token, error, token_type: type } = json ?? {}
  if (status === 400 && error !== "invalid_client" && error !== "unauthorized_client")
    return undefined
  const isBearer = typeof type === "string" && type.toLowerCase() === "bearer"
  return status === 200 && typeof token === "string" && isBearer
    ? token
    : yield* unavailable(`the token endpoint has status ${status}`)
})

/** How requests to the token endpoint name us. */
const clientOf = ({ clientId, clientSecret }: OpenidLogin): ClientLogin =>
  Option.match(clientSecret, {
    onNone: () => ({ headers: {}, fields: Effect.succeed({ client_id: clientId }) }),
    onSome: (secret) => bySecret(clientId, Redacted.value(secret))
  })

/**
 * Whether a response lacks the `iss` that its issuer always sends (RFC 9207 section 2.4). An error
 * needs no such check, so users learn why their login ended while the issuer is away, too.
 */
const lacksIss = (
  { authorization_response_iss_parameter_supported: isNamed }: Discovered,
  iss: string | undefined
): boolean => iss === undefined && isNamed === true
