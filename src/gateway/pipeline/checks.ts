// The steps of pipeline.ts before the operation. Each returns, or fails with, the response that
// ends the request.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Caller, type Identified, Identity } from "#identity/identity.ts"
import type { Policy } from "#identity/policy.ts"
import type { Invalid } from "#identity/verdict.ts"
import {
  type ApiRequest,
  acceptsJson,
  declaresJson,
  isJson,
  notAcceptable,
  unsupported
} from "../http/request.ts"
import {
  type ApiResponse,
  type ErrorDetail,
  errorIn,
  ok,
  type Refused,
  refuse,
  refuseInvalid
} from "../http/response.ts"
import {
  allowedOrigin,
  anyOrigin,
  endOfService,
  expiringIn,
  foreignOrigin,
  isPreflight,
  redirectPreflightHeaders
} from "../http/response-headers.ts"
import { decodePercent, type OperationRules, type Route } from "../http/routing.ts"
import type { AnyOperation, Endpoint } from "../operation.ts"
import { isOperator, mayPublish, mayUseUsers } from "../rights.ts"
import type { GatewaySettings } from "../settings.ts"

/** An hour, as in Kinto. What a path without its slash leads to changes with the code only. */
const slashRedirectSeconds = 3_600

type Settings = GatewaySettings["Service"]
type Redirect = Extract<Route, { readonly kind: "redirect" }>

/** The methods that a read-only server still offers. */
const readMethods = ["GET", "HEAD", "OPTIONS"]

/** Steps 1 and 2: the service has ended, or is read-only. */
export const checkService = (
  { method }: ApiRequest,
  route: Route<Endpoint>,
  settings: Settings,
  now: number
): Refused | undefined => {
  const { eos, readonly } = settings
  const isProbe = route.kind === "endpoint" && route.endpoint.name === "lbheartbeat"
  if (Option.isSome(eos) && now >= endOfService(eos.value) && !isProbe) return refuse("end-of-life")
  if (!readonly || readMethods.includes(method)) return undefined
  return refuseMethod(route.kind === "endpoint" ? route.endpoint : undefined, settings)
}

/** The 405, with the methods that work now. `endpoint` is unset where the path has none. */
export const refuseMethod = (endpoint: Endpoint | undefined, settings: Settings): Refused => {
  const methods = endpoint === undefined ? readMethods : methodsOf(endpoint, settings)
  const allowed = methods.filter((method) => !settings.readonly || readMethods.includes(method))
  return refuse("method-not-allowed", { headers: { Allow: allowed.join(", ") } })
}

export const methodsOf = (endpoint: Endpoint, settings: Settings): ReadonlyArray<string> =>
  endpoint.allow.filter((method) => isOffered(endpoint, method, settings))

/** Whether the endpoint has the method and the settings leave it on. */
export const isOffered = (
  { allow, name }: Endpoint,
  method: string,
  { batchEnabled }: Settings
): boolean => allow.includes(method) && (batchEnabled || name !== "batch" || method !== "POST")

/** Step 4: the response to a request whose path leads to a redirect. */
export const redirect = (
  request: ApiRequest,
  { to, why }: Redirect,
  origin: string,
  now: number
): Effect.Effect<ApiResponse, Refused> => {
  if (isPreflight(request)) return Effect.succeed(ok(undefined, redirectPreflightHeaders(request)))
  if (why === "version" && request.method === "OPTIONS") return Effect.succeed(ok(undefined))
  // `DELETE /subscriptions/` comes from a client whose id is empty. After a redirect it would
  // remove all subscriptions.
  if (why === "slash" && request.method === "DELETE") return refuse("unknown-url")
  // The redirect to the version is not cached: a later version will be another place.
  const caching = why === "slash" ? expiringIn(slashRedirectSeconds, now) : {}
  const location = `${origin}${to}`
  const body = { code: 307, message: "Temporary Redirect", location }
  const response = ok(body, { Location: location, ...caching }, 307)
  return Effect.succeed({ ...response, movedTo: to })
}

/** Step 6: Accept and Content-Type. */
export const checkMedia = (
  request: ApiRequest,
  { negotiates, takesJson }: AnyOperation
): Refused | undefined => {
  if (negotiates && !acceptsJson(request.headers["accept"]))
    return refuseInvalid([notAcceptable], "not-acceptable")
  const isChecked = takesJson === "always" || (takesJson === "withBody" && request.hasBody)
  return isChecked && !isJson(request)
    ? refuseInvalid([unsupported], "unsupported-media-type")
    : undefined
}

const nobody: Identified = { caller: undefined, invalid: new Map() }

/** Step 7: identifies the caller. Nobody when the operation needs no caller and there is none. */
export const identify = Effect.fnUntraced(function* (
  request: ApiRequest,
  { access }: AnyOperation
) {
  if (access === "anyone") return nobody
  const identity = yield* Identity
  const identified = identity.identify(request)
  return yield* access === "guest" ? Effect.orElseSucceed(identified, () => nobody) : identified
})

/**
 * Step 7: rejects another caller than the one whom the request names. Behind a proxy that knows its
 * users by a cookie, a page cannot tell that somebody else has logged in since it was opened.
 */
export const checkUser = ({ headers }: ApiRequest, { caller }: Identified): Refused | undefined => {
  const named = headers["if-user"]
  const isAnother =
    named !== undefined && caller !== undefined && decodePercent(named) !== caller.id
  return isAnother ? refuse("another-user") : undefined
}

/** Step 7: rejects a caller who may not use the operation. */
export const authorise = Effect.fnUntraced(function* (
  identified: Identified,
  operation: AnyOperation,
  channel: string | undefined
) {
  const { caller } = identified
  if (operation.access === "anyone" || operation.access === "guest") return
  if (caller === undefined)
    return yield* refuse("unauthenticated", {
      headers: challengeHeader(yield* Identity, identified)
    })
  if (!(yield* mayUse(caller, operation, channel))) return yield* refuse("forbidden")
})

/** Whether a caller may use an operation, on the channel in its path if there is one. */
const mayUse = Effect.fnUntraced(function* (
  caller: Caller,
  { access }: AnyOperation,
  channel: string | undefined
) {
  if (access === "caller") return caller.rights === undefined
  if (access === "principal") return true
  if (access === "operator") return yield* isOperator(caller)
  if (access === "eraser") return (yield* isOperator(caller)) || (yield* mayUseUsers(caller))
  if (access === "viewer" && (yield* isOperator(caller))) return true
  if (access === "users" && !(yield* mayUseUsers(caller))) return false
  return channel === undefined || (yield* mayPublish(caller, channel))
})

/**
 * The response to a guest: with a challenge if the credentials were refused, so that a page learns
 * that its token is over (RFC 9110 section 11.6.1).
 */
export const withChallenge = Effect.fnUntraced(function* (
  response: ApiResponse,
  identified: Identified,
  { access }: AnyOperation
) {
  const { caller, invalid } = identified
  if (access !== "guest" || caller !== undefined || invalid.size === 0) return response
  const headers = { ...challengeHeader(yield* Identity, identified), ...response.headers }
  return { ...response, headers }
})

const challengeHeader = (
  { policies }: Identity["Service"],
  { invalid }: Identified
): Readonly<Record<string, string>> => {
  const challenges = challengesOf(policies, invalid)
  return challenges === "" ? {} : { "WWW-Authenticate": challenges }
}

/**
 * The value of WWW-Authenticate. Policies with the same challenge share one, and those that refused
 * the credentials say why in its place.
 */
export const challengesOf = (
  policies: ReadonlyArray<Pick<Policy, "challenge" | "name">>,
  invalid: Identified["invalid"]
): string => {
  const refusing = policies.filter(({ name }) => invalid.has(name))
  const texts = policies.flatMap(({ challenge, name }) => {
    const wrong = invalid.get(name)
    if (wrong !== undefined) return [`${challenge}, ${errorOf(wrong)}`]
    return refusing.some((each) => each.challenge === challenge) ? [] : [challenge]
  })
  return [...new Set(texts)].join(", ")
}

/** The parameters of a challenge that say what is wrong with a token (RFC 6750 section 3.1). */
const errorOf = ({ description, error }: Invalid): string =>
  description === undefined
    ? `error="${error}"`
    : `error="${error}", error_description="${description}"`

/** Step 8: an Origin that may not call, and cross-site requests. */
export const checkOrigin = (
  request: ApiRequest,
  operation: AnyOperation,
  ownOrigin: string,
  allowed: ReadonlyArray<string>
): Refused | undefined => {
  const { origin } = request.headers
  // Browsers name the origin in requests of the server's own pages, too.
  const isForeign =
    origin !== undefined &&
    allowedOrigin(origin, allowed) === undefined &&
    origin.toLowerCase() !== ownOrigin.toLowerCase()
  const error =
    isForeign && operation.crossSite !== "open"
      ? foreignOrigin
      : crossSiteError(request, operation, ownOrigin, allowed)
  return error === undefined ? undefined : refuseInvalid([error])
}

const changing = ["POST", "PUT", "PATCH", "DELETE"]

/**
 * The error of a cross-site request that changes data; undefined when the request may go on. In a
 * cross-site request forgery (CSRF) a page of another site makes a browser send a request, and the
 * browser adds its Basic credentials, or a cookie for a proxy in front.
 *
 * When every origin may call (`*`), a POST must declare JSON, with or without a body. Forms cannot
 * do that. Scripts can only after a preflight, which allows no credentials of the browser; other
 * methods always need one. When the settings list origins, the request must name one of them.
 *
 * Entries of a batch are not checked: the page itself wrote their headers. The request that carried
 * the batch was checked by the headers of the browser.
 */
const crossSiteError = (
  request: ApiRequest,
  { crossSite }: OperationRules,
  ownOrigin: string,
  allowed: ReadonlyArray<string>
): ErrorDetail | undefined => {
  if (crossSite === "open" || request.batched || !changing.includes(request.method))
    return undefined
  if (!isCrossSite(request, ownOrigin)) return undefined
  if (!anyOrigin(allowed)) {
    const { origin } = request.headers
    return origin !== undefined && allowedOrigin(origin, allowed) ? undefined : foreignOrigin
  }
  const isPreflighted = request.method !== "POST" || declaresJson(request)
  return isPreflighted || isSentByScript(request) ? undefined : needsJson
}

/** Trusted values of Sec-Fetch-Site. Not "same-site": somebody else may own a sibling subdomain. */
const ownSites = ["same-origin", "none"]

/**
 * Whether a browser sends the request for a page of another origin. Browsers before 2023 send
 * Origin but not Sec-Fetch-Site; curl and servers send neither.
 */
const isCrossSite = ({ headers }: ApiRequest, ownOrigin: string): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return !ownSites.includes(site.trim().toLowerCase())
  const { origin } = headers
  return origin !== undefined && origin.toLowerCase() !== ownOrigin.toLowerCase()
}

/** Browsers never add these schemes by themselves: a script that knows the token sent them. */
const isSentByScript = ({ headers }: ApiRequest): boolean =>
  /^(bearer|portier) /i.test(headers["authorization"] ?? "")

const needsJson = errorIn(
  "header",
  "Content-Type",
  "Content-Type must be application/json for a request from another site"
)
