// CORS: which origins may call, which headers scripts may read, and preflights. Pure.
import { matchesGlob } from "#basics/wildcard.ts"
import { type ErrorDetail, errorIn } from "./errors.ts"
import type { ApiRequest } from "./request.ts"
import { type Endpoint, operationOf } from "./routing.ts"

const baseExposed = [
  "Backoff",
  "Retry-After",
  "Alert",
  "Content-Length",
  "Content-Type",
  "WWW-Authenticate"
]

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
  const permitted = origin === undefined ? undefined : allowedOrigin(origin, allowed)
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

/** Whether a request is a CORS preflight. */
export const isPreflight = ({ headers, method }: ApiRequest): boolean =>
  method === "OPTIONS" &&
  headers["origin"] !== undefined &&
  headers["access-control-request-method"] !== undefined

/** How long browsers may cache a preflight: after an hour they see a change of the origins. */
const maxAge = { "Access-Control-Max-Age": "3600" }

/**
 * Headers for a preflight of a URL that redirects. Browsers do not follow redirects of a preflight,
 * so allow any method: the browser sends a second preflight to the redirect's target.
 */
export const redirectPreflightHeaders = ({ headers }: ApiRequest): Record<string, string> => ({
  "Access-Control-Allow-Methods": headers["access-control-request-method"] ?? "",
  "Access-Control-Allow-Headers": headers["access-control-request-headers"] ?? "",
  ...maxAge
})

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
