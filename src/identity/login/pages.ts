// The interface of login pages: a browser without a token is sent to the provider, and from there
// back to the site's page, with a token in the fragment of the URL.
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { IdentityUnavailable, TooManyFailures } from "../verdict.ts"
import type { LoginErrorCode } from "./login-errors.ts"

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
}

/** Where to send the browser, and the cookie that it gets. */
export interface Departure {
  readonly location: string
  readonly setCookie: string
}

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

export type LoginError =
  | LoginRefused
  | LoginFailed
  | TooManyLogins
  | TooManyFailures
  | IdentityUnavailable

/** The code of an error. What fails for another reason may work later. */
export const loginErrorCode = (error: LoginError): LoginErrorCode =>
  "code" in error ? error.code : "temporarily_unavailable"

/** A login that somebody asks for. */
export interface Question {
  readonly email: string
  readonly redirect: string
  /** The URL of the provider. */
  readonly provider: string
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

export interface OpenidPages extends Pages {
  /** The endpoints that serve the pages. */
  readonly at: "openid"
}

export interface PortierPages extends Pages {
  readonly at: "portier"
  /** The question to a user who comes by a link. */
  readonly ask: (fields: Visit["fields"]) => Effect.Effect<Question, LoginRefused>
}

export type LoginPages = OpenidPages | PortierPages

/** A parameter of a request cannot be used. */
export const wrongField = (field: string, description: string) =>
  new LoginRefused({ code: "invalid_request", field, description })
