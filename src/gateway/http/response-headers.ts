// The headers that every response may have: security, CORS, Backoff, Alert, Retry-After; which
// origins may call, and the absolute URLs of the API and its documentation. Pure.
import * as Option from "effect/Option"
import { asciiJson } from "#basics/json.ts"
import { matchesGlob } from "#basics/wildcard.ts"
import { plainHost, type SettingsShape } from "#config"
import { addressText } from "#settings/addresses.ts"
import type { GatewaySettings } from "../settings.ts"
import type { ApiRequest } from "./request.ts"
import { type ApiResponse, type ErrorDetail, errorIn } from "./response.ts"
import { type Endpoint, operationOf } from "./routing.ts"

/**
 * For data that the user's next request may change. Without this header a cache may reuse a
 * response with Last-Modified for a tenth of its age (RFC 9111 section 4.2.2).
 */
export const noStore = { "Cache-Control": "no-cache, no-store" } as const

const secure = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
}

/**
 * Headers of every response, unless it has its own. Without them a cache may keep 404, 405 and 410
 * (RFC 9110 section 15.1), and what is missing now may be there a moment later.
 */
export const headersOfEvery = (status: number): Readonly<Record<string, string>> =>
  status >= 400 ? { ...secure, ...noStore } : secure

/** The values that the common headers depend on. */
interface HeaderContext {
  readonly settings: GatewaySettings["Service"]
  readonly retryAfterSeconds: number
  readonly rootUrl: string
  readonly now: number
}

/** The response with its own headers and the common ones. */
export const addCommonHeaders = (
  request: ApiRequest,
  response: ApiResponse,
  endpoint: Endpoint | undefined,
  context: HeaderContext
): ApiResponse => {
  const { now, retryAfterSeconds, rootUrl, settings } = context
  const headers: Record<string, string> = {
    ...headersOfEvery(response.status),
    ...corsHeaders(request, settings.corsOrigins, endpoint, response.status)
  }
  // Headers that replace the response's own: the end of service outranks a deprecation.
  const overriding: Record<string, string> = {}
  if (settings.backoff > 0) headers["Backoff"] = String(settings.backoff)
  if (isTryLater(response)) headers["Retry-After"] = String(retryAfterSeconds)
  if (Option.isSome(settings.eos)) {
    const over = now >= endOfService(settings.eos.value)
    overriding["Alert"] = asciiJson({
      code: over ? "hard-eol" : "soft-eol",
      message: settings.eosMessage === "" ? null : settings.eosMessage,
      url: settings.eosUrl === "" ? docsUrl(settings, rootUrl) : settings.eosUrl
    })
  }
  const vary = [headers["Vary"], response.headers["Vary"]]
    .filter((name) => name !== undefined)
    .join(", ")
  return {
    ...response,
    headers: {
      ...headers,
      ...response.headers,
      ...overriding,
      ...(vary === "" ? {} : { Vary: vary })
    }
  }
}

/** Whether the same request may succeed later: then the response has Retry-After. */
export const isTryLater = ({ error, status }: Pick<ApiResponse, "error" | "status">): boolean =>
  status >= 500 || status === 429 || error === "too-many-writes"

/** The end of service in milliseconds since the epoch. A date means its midnight, local time. */
export const endOfService = (eos: string): number =>
  new Date(/^\d{4}-\d{2}-\d{2}$/.test(eos) ? `${eos}T00:00:00` : eos).getTime()

/** Lets clients cache a response for some seconds. */
export const expiringIn = (seconds: number, now: number): Record<string, string> => ({
  "Cache-Control": `max-age=${seconds}`,
  Expires: new Date(now + seconds * 1000).toUTCString()
})

const baseExposed = [
  "Backoff",
  "Retry-After",
  "Alert",
  "Content-Length",
  "Content-Type",
  "WWW-Authenticate"
]

/**
 * The CORS headers of any response. Errors and redirects need them too: without
 * Access-Control-Allow-Origin a page sees a network error instead of a 404.
 */
export const corsHeaders = (
  { headers, method }: ApiRequest,
  allowed: ReadonlyArray<string>,
  endpoint: Endpoint | undefined,
  status: number
): Record<string, string> => {
  const result: Record<string, string> = {}
  const { origin } = headers
  const permitted =
    origin === undefined ? undefined : allowedOrigin(origin, originsOf(endpoint, allowed))
  if (permitted !== undefined) result["Access-Control-Allow-Origin"] = permitted
  // Also without Origin: a shared cache could give that response to a page.
  if (!anyOrigin(allowed)) result["Vary"] = "Origin"
  if (method === "OPTIONS" || status === 405) return result
  const exposes = endpoint === undefined ? [] : (operationOf(endpoint, method)?.exposes ?? [])
  result["Access-Control-Expose-Headers"] = [...baseExposed, ...exposes].join(
    endpoint === undefined ? "," : ", "
  )
  return result
}

/** The origins whose pages may use an endpoint; `allowed`: those that may call the API. */
export const originsOf = (
  endpoint: Endpoint | undefined,
  allowed: ReadonlyArray<string>
): ReadonlyArray<string> => (endpoint?.isForOwnPages ? [] : allowed)

/** Whether every origin may call. */
export const anyOrigin = (allowed: ReadonlyArray<string>): boolean => allowed.includes("*")

/** Bounds the matching time, which is quadratic. A host name has at most 253 characters. */
const originCharsMax = 300

/** The value of Access-Control-Allow-Origin; undefined when the origin may not call. */
export const allowedOrigin = (
  origin: string,
  allowed: ReadonlyArray<string>
): string | undefined => {
  if (anyOrigin(allowed)) return "*"
  if (origin.length > originCharsMax) return undefined
  return allowed.some((pattern) => matchesGlob(pattern, origin)) ? origin : undefined
}

export const foreignOrigin = errorIn("header", "Origin", "This Origin is not allowed")

/** Whether a request is a CORS preflight. */
export const isPreflight = ({ headers, method }: ApiRequest): boolean =>
  method === "OPTIONS" &&
  headers["origin"] !== undefined &&
  headers["access-control-request-method"] !== undefined

/** The errors of a preflight request. */
export const preflightErrors = (
  { headers }: ApiRequest,
  allowed: ReadonlyArray<string>,
  methods: ReadonlyArray<string>
): ReadonlyArray<ErrorDetail> => {
  const errors: Array<ErrorDetail> = []
  const method = headers["access-control-request-method"]
  const addError = (name: string, description: string) =>
    errors.push(errorIn("header", name, description))
  if (headers["origin"] === undefined) addError("Origin", "Required")
  else if (allowedOrigin(headers["origin"], allowed) === undefined) errors.push(foreignOrigin)
  if (method === undefined) addError("Access-Control-Request-Method", "Required")
  else if (!methods.includes(method))
    addError("Access-Control-Request-Method", "This method is not offered here")
  return errors
}

/** How long browsers may cache a preflight: after an hour they see a change of the origins. */
const maxAge = { "Access-Control-Max-Age": "3600" }

export const preflightHeaders = (
  { headers }: ApiRequest,
  endpoint: Endpoint,
  methods: ReadonlyArray<string>
): Record<string, string> => {
  const exposed = Object.values(endpoint.operations).flatMap(
    (operation) => operation?.exposes ?? []
  )
  const requested = (headers["access-control-request-headers"] ?? "")
    .split(",")
    .map((name) => name.trim())
  const names = [...new Set([...baseExposed, ...exposed, ...requested])].filter(
    (name) => name !== ""
  )
  return {
    "Access-Control-Allow-Methods": methods.join(","),
    "Access-Control-Allow-Headers": names.join(","),
    ...maxAge
  }
}

/**
 * Headers for a preflight of a URL that redirects. Browsers do not follow redirects of a preflight,
 * so allow any method: the browser sends a second preflight to the redirect's target.
 */
export const redirectPreflightHeaders = ({ headers }: ApiRequest): Record<string, string> => ({
  "Access-Control-Allow-Methods": headers["access-control-request-method"] ?? "",
  "Access-Control-Allow-Headers": headers["access-control-request-headers"] ?? "",
  ...maxAge
})

type Arrived = Pick<ApiRequest, "headers" | "received" | "fromTrustedProxy" | "port">

/**
 * Scheme and host as clients see them: from the settings, else from X-Forwarded-Proto of a trusted
 * proxy and the Host header.
 */
export const originOf = (
  settings: Pick<SettingsShape, "httpScheme" | "httpHost" | "host">,
  request: Arrived
): string => {
  const { host } = request.headers
  const scheme = Option.getOrElse(settings.httpScheme, () => schemeOf(request))
  // Ignore a Host that is no valid host: a client must not write other text into responses.
  const named =
    host !== undefined && plainHost.test(host) ? host : addressText(settings.host, request.port)
  const seen = Option.getOrElse(settings.httpHost, () => named)
  return `${scheme}://${withoutDefaultPort(scheme, seen)}`
}

/** `x:80` and `x` are the same origin for http. Browsers send the short form. */
export const withoutDefaultPort = (scheme: "http" | "https", host: string): string =>
  host.replace(scheme === "https" ? /:0*443$/ : /:0*80$/, "")

/** A proxy that ends TLS says so. Any other text is ignored, as is that of somebody else. */
const schemeOf = ({ fromTrustedProxy, received }: Arrived): "http" | "https" =>
  fromTrustedProxy && received["x-forwarded-proto"]?.toLowerCase() === "https" ? "https" : "http"

/** The URL of the documentation: from the settings, else the API description. */
export const docsUrl = (
  { projectDocs }: Pick<GatewaySettings["Service"], "projectDocs">,
  rootUrl: string
): string => (projectDocs === "" ? `${rootUrl}/__api__` : projectDocs)
