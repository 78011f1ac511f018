// Login pages: a browser without a token is sent to the provider, and from there back to a page of
// the site, with a token in the fragment of the URL. Here are their interface, the errors of a
// login that ends without a token, and the pages to which it may return.
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import { matchesGlob } from "#basics/wildcard.ts"
import { isLoopback } from "../provider/client.ts"
import type { IdentityUnavailable, TooManyFailures } from "../verdict.ts"

/** A browser that wants to log in, or returns from the provider. */
export interface Visit {
  /** Absolute URL of the API without trailing slash. */
  readonly rootUrl: string
  /** The Cookie header. */
  readonly cookies: string | undefined
  /** The key of limits per address. */
  readonly address: string
  /** The page that sends the form, by its URL or origin; "" if it does not say where it is. */
  readonly page: string
  /** The parameters of the query string or the form. */
  readonly fields: Readonly<Record<string, string>>
  /** The page of the console, to which every login may return; undefined: there is none. */
  readonly consoleUrl?: string | undefined
}

/** Where to send the browser, and the cookie that it gets. */
interface Departure {
  readonly location: string
  readonly setCookie: string
}

export type LoginPages = OpenidPages | PortierPages

export interface OpenidPages extends Pages {
  /** The endpoints that serve the pages. */
  readonly at: "openid"
}

export interface PortierPages extends Pages {
  readonly at: "portier"
  /** The question to a user who comes by a link. */
  readonly ask: (
    visit: Pick<Visit, "consoleUrl" | "fields">
  ) => Effect.Effect<Question, LoginRefused>
}

interface Pages {
  readonly begin: (visit: Visit) => Effect.Effect<Departure, LoginError>
  readonly finish: (visit: Visit) => Effect.Effect<Departure, LoginError>
  /**
   * The page to which a login returns that ended with an error; undefined if this browser, by its
   * Cookie header, began none.
   */
  readonly returnOf: (cookies: string | undefined, error: LoginError) => string | undefined
}

/** A login that somebody asks for. */
export interface Question {
  readonly email: string
  readonly redirect: string
  /** The URL of the provider. */
  readonly provider: string
}

export type LoginError =
  | LoginRefused
  | LoginFailed
  | TooManyLogins
  | TooManyFailures
  | IdentityUnavailable

const needsUser = "The login provider has a question for you. Please log in again."

/**
 * The sentences of all errors. Their codes are those of RFC 6749 section 4.1.2.1 and of OpenID
 * Connect Core section 3.1.2.6 where one fits; `expired` and `other_browser` are ours. Pages get
 * no `other_browser`: only a browser that began a login is sent to one.
 */
export const loginErrors = {
  access_denied: "The login was cancelled, or the login provider refused it.",
  login_required: "Nobody is logged in at the login provider.",
  interaction_required: needsUser,
  consent_required: needsUser,
  account_selection_required: needsUser,
  expired: "This login took longer than 15 minutes. Please log in again.",
  invalid_request: "This login is over, or a later one took its place. Please log in again.",
  other_browser: "This browser did not begin this login, or it is over.",
  server_error:
    "This service cannot use what the login provider says. Its log tells the operator why.",
  temporarily_unavailable: "Logins do not work at the moment. Please try again in a few minutes."
} as const

export type LoginErrorCode = keyof typeof loginErrors

/** A parameter or a page that cannot be used, or the provider's refusal. */
export class LoginRefused extends Data.TaggedError("LoginRefused")<{
  readonly code: LoginErrorCode
  /** The parameter; undefined: another reason. */
  readonly field?: string
  readonly description: string
}> {}

/** The browser did not begin this login, or what it brings from the provider is not believed. */
export class LoginFailed extends Data.TaggedError("LoginFailed")<{
  readonly code: LoginErrorCode
}> {}

export class TooManyLogins extends Data.TaggedError("TooManyLogins")<{
  /** Milliseconds until the next is allowed. */
  readonly waitMillis: number
}> {}

/** The code of an error. What fails for another reason may work later. */
export const loginErrorCode = (error: LoginError): LoginErrorCode =>
  "code" in error ? error.code : "temporarily_unavailable"

/** A parameter of a request cannot be used. */
export const wrongField = (field: string, description: string) =>
  new LoginRefused({ code: "invalid_request", field, description })

/** Errors that providers send, and that say as much to the page as ours. */
const passedOn: ReadonlyArray<LoginErrorCode> = [
  "access_denied",
  "login_required",
  "interaction_required",
  "consent_required",
  "account_selection_required",
  "temporarily_unavailable"
]

/** Our code for an error of the provider. Others mean that we did not get along. */
export const codeOfProvider = (error: string): LoginErrorCode =>
  passedOn.find((code) => code === error) ?? "server_error"

/** Browsers store cookies of at most 4,096 bytes; that of a login holds the redirect in base64. */
const charsMax = 2_000

/** Why a text is no pattern of hosts. */
export const hostPatternFault = (pattern: string): string | undefined =>
  /^[a-z0-9*.-]*[a-z0-9][a-z0-9.-]*(:\d{1,5})?$/.test(pattern) && !/:0*(80|443)$/.test(pattern)
    ? undefined
    : "Expected a host in lower case such as app.example.org, *.example.org or localhost:3000, " +
      "without a default port"

/**
 * Why a browser must not be sent to a URL with a token: whoever gets the browser there gets the
 * token. `ownPage`: a page that is allowed whatever the hosts are, with any fragment.
 */
export const redirectFault = (
  text: string,
  hosts: ReadonlyArray<string>,
  ownPage?: string
): string | undefined => {
  if (text.length > charsMax) return `Must have at most ${charsMax} characters`
  // Browsers read "https:\\host" and "https:/host" as URLs, too, and skip tabs and line breaks.
  const isPlain = /^[!-[\]-~]+$/.test(text) && /^https?:\/\/[^/?#@]+([/?#]|$)/i.test(text)
  const url = isPlain ? URL.parse(text) : null
  if (url === null) return "Must be an absolute URL in ASCII, without a login"
  if (url.protocol !== "https:" && !isLoopback(url)) return "Must begin with https://"
  const isAllowed =
    url.href.split("#")[0] === ownPage || hosts.some((pattern) => matchesGlob(pattern, url.host))
  return isAllowed ? undefined : "The host is not allowed"
}

/** Whether a page is on one of the hosts. `page`: its URL or origin. */
export const isPageAt = (page: string, hosts: ReadonlyArray<string>): boolean =>
  redirectFault(URL.parse(page)?.origin ?? "", hosts) === undefined

/** The URL with the token behind its fragment, as the URL parser writes it. */
export const withToken = (redirect: string, token: string): string => {
  const { href } = new URL(redirect)
  return `${href}${href.includes("#") ? "" : "#"}${encodeURIComponent(token)}`
}

/**
 * The URL with an error where `withToken` puts the token: of a fragment that ends in `token=`, that
 * name goes.
 */
export const withError = (redirect: string, code: LoginErrorCode): string => {
  const { href } = new URL(redirect)
  const [page = "", ...fragment] = href.split("#")
  const before = withoutName(fragment.join("#"))
  const description = encodeURIComponent(loginErrors[code])
  return `${page}#${before}error=${code}&error_description=${description}`
}

/** A fragment without a name and `=` at its end. */
const withoutName = (fragment: string): string => {
  const end = fragment.length - 1
  if (fragment[end] !== "=") return fragment
  let start = end
  while (start > 0 && !"#/?&=".includes(fragment[start - 1]!)) start--
  return start === end ? fragment : fragment.slice(0, start)
}
