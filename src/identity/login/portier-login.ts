// The login of Portier (OpenID Connect's implicit flow with form_post): a broker proves that the
// user receives mail at an address, the browser returns with an identity token, and gets the token
// of a session (sessions.ts).
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { makeRate } from "#basics/limits.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { normalAddress } from "../principals.ts"
import type { Discovered, KeySet } from "../provider/key-set.ts"
import { type Claims, lateFault, partiesOf, timeFault } from "../tokens/claims.ts"
import { claimsOf, claimsOfIssuer } from "../tokens/jwt.ts"
import { type BrowserState, makeBrowserStates } from "./browser-state.ts"
import {
  isPageAt,
  type LoginErrorCode,
  LoginRefused,
  type PortierPages,
  redirectFault,
  TooManyLogins,
  type Visit,
  withToken,
  wrongField
} from "./pages.ts"
import type { Sessions } from "./sessions.ts"

interface PortierLogin {
  readonly name: string
  /** The broker, as its tokens name it. */
  readonly issuer: string
  readonly redirectHosts: ReadonlyArray<string>
  readonly loginsPerClientPerHourMax: number
}

const hourMillis = 3_600_000
const rateKeysMax = 20_000
/**
 * Logins that one client may begin in an hour for one mail address: several browsers whose sessions
 * last 15 minutes.
 */
const perAddressPerHourMax = 20
/** Seconds by which the broker's clock may be ahead of ours. */
const skewSeconds = 180
const addressBytesMax = 254

export const portierPages = Effect.fnUntraced(function* (
  login: PortierLogin,
  keySet: KeySet,
  sessions: Sessions
) {
  const { issuer, name, redirectHosts } = login
  const states = yield* makeBrowserStates(name, "None")
  const waitMillisOf = makeLimits(login)

  const ask: PortierPages["ask"] = Effect.fnUntraced(function* ({ consoleUrl, fields }) {
    const { email = "", redirect = "" } = fields
    const description = redirectFault(redirect, redirectHosts, consoleUrl)
    if (!isAddress(email)) return yield* wrongField("email", "Must be a mail address")
    if (description !== undefined) return yield* wrongField("redirect", description)
    return { email, redirect, provider: issuer }
  })

  const begin = Effect.fnUntraced(function* (visit: Visit) {
    const { address, page, rootUrl } = visit
    if (URL.parse(page)?.origin !== new URL(rootUrl).origin && !isPageAt(page, redirectHosts))
      return yield* new LoginRefused({ code: "invalid_request", description: foreignPage })
    const { email, redirect } = yield* ask(visit)
    const waitMillis = waitMillisOf(address, email, yield* monotonicMillis)
    if (waitMillis > 0) return yield* new TooManyLogins({ waitMillis })
    const { discovered } = yield* keySet.current
    const { nonce, setCookie } = yield* states.begin(redirect)
    return { location: brokerUrl(issuer, discovered, rootUrl, email, nonce), setCookie }
  })

  const finish = Effect.fnUntraced(function* ({ cookies, fields, rootUrl }: Visit) {
    const { error, id_token: token } = fields
    if (error !== undefined) return yield* states.refused(error)
    if (token === undefined) return yield* wrongField("id_token", "Required")
    const state = yield* states.read(cookies)
    const algorithms = algorithmsOf((yield* keySet.current).discovered)
    const claims = yield* claimsOfIssuer(token, keySet, algorithms)
    const clientId = new URL(rootUrl).origin
    const now = yield* Clock.currentTimeMillis
    const wrong =
      typeof claims === "string" ? claims : faultOf(claims, issuer, clientId, state, now)
    if (wrong !== undefined)
      return yield* states.failed(wrong, codeOf(wrong), {
        expected: partiesOf({ iss: issuer, aud: clientId }),
        found: partiesOf(claimsOf(token) ?? {})
      })
    yield* states.spend(state)
    const { token: session } = yield* sessions.open((claims as Claims)["sub"] as string)
    return { location: withToken(state.redirect, session), setCookie: states.cleared }
  })
  return { at: "portier", ask, begin, finish, returnOf: states.returnOf } satisfies PortierPages
})

/**
 * Counts logins, as each sends a mail to whomever the client names. Those of different clients for
 * one mail address are not added up: anybody could keep its user from logging in, with a request
 * every three minutes. The broker, whose page anybody may open, limits the mails to an address.
 */
const makeLimits = (login: PortierLogin) => {
  const clients = makeRate(login.loginsPerClientPerHourMax, hourMillis, rateKeysMax)
  const addresses = makeRate(perAddressPerHourMax, hourMillis, rateKeysMax)
  return (client: string, email: string, now: number) => {
    const waitMillis = clients.take(client, now)
    if (waitMillis > 0) return waitMillis
    return addresses.take(`${client} ${normalAddress(email)}`, now)
  }
}

/**
 * The broker's mail has a link that ends the login in any browser. So neither a page of somebody
 * else nor a link in a mail may begin one: both could send the browser to the link of a mail of
 * their own afterwards, and the user would be logged in as somebody else without noticing.
 */
const foreignPage =
  "A login must begin on a page whose host is allowed, and which sends its Origin or Referer"

const isAddress = (text: unknown): text is string =>
  typeof text === "string" &&
  Buffer.byteLength(text) <= addressBytesMax &&
  !/[\s\p{Cc}\p{Cf}"<>]/u.test(text) &&
  hasDomain(text)

/** Whether a text has one `@`, and a dot within what follows. */
const hasDomain = (text: string): boolean => {
  const [name, domain = "", ...others] = text.split("@")
  const dot = domain.indexOf(".", 1)
  return name !== "" && others.length === 0 && dot !== -1 && dot < domain.length - 1
}

/** The broker's page for a login. */
export const brokerUrl = (
  issuer: string,
  discovered: Discovered,
  rootUrl: string,
  email: string,
  nonce: string
): string => {
  const url = new URL(discovered.authorization_endpoint ?? `${issuer}/auth`)
  const [algorithm] = algorithmsOf(discovered)
  const mayChoose = discovered.accepts_id_token_signing_alg_query_param === true
  const parameters = {
    login_hint: email,
    scope: "openid email",
    nonce,
    response_type: "id_token",
    response_mode: "form_post",
    client_id: new URL(rootUrl).origin,
    // Brokers refuse a URL whose host is not in lower case, as in their client_id.
    redirect_uri: new URL(`${rootUrl}/portier/verify`).href,
    ...(mayChoose && algorithm !== undefined ? { id_token_signing_alg: algorithm } : {})
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}

/** The algorithms that the broker signs with, the best first. Never HMAC or none. */
const algorithmsOf = ({ id_token_signing_alg_values_supported: named }: Discovered) => {
  const supported = Array.isArray(named) ? named : ["RS256"]
  return ["EdDSA", "RS256"].filter((algorithm) => supported.includes(algorithm))
}

/** The claim of an identity token that is wrong; undefined: the token ends this login. */
const faultOf = (
  claims: Claims,
  issuer: string,
  clientId: string,
  { nonce }: BrowserState,
  now: number
): string | undefined => {
  const { aud, email_verified: verified, exp, iat, iss, sub } = claims
  if (iss !== issuer) return "iss"
  if (aud !== clientId) return "aud"
  if (claims["nonce"] !== nonce) return "nonce"
  if (typeof exp !== "number") return "exp"
  const late = timeFault(claims, now)
  if (late !== undefined) return late
  if (typeof iat !== "number" || iat - skewSeconds > now / 1000) return "iat"
  return isAddress(sub) && (verified === undefined || verified === true) ? undefined : "sub"
}

/** The error of a login whose identity token has this fault. */
const codeOf = (fault: string): LoginErrorCode =>
  fault === "nonce" ? "invalid_request" : fault === lateFault ? "expired" : "server_error"
