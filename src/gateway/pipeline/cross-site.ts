// Rejects cross-site request forgery (CSRF): a page of another site makes a browser send a request,
// and the browser adds its Basic credentials, or a cookie for a proxy in front. Pure.

import { allowedOrigin, anyOrigin, foreignOrigin } from "../http/cors.ts"
import { type ErrorDetail, errorIn } from "../http/errors.ts"
import { declaresJson } from "../http/media.ts"
import type { ApiRequest } from "../http/request.ts"
import type { OperationRules } from "../http/routing.ts"

const changing = ["POST", "PUT", "PATCH", "DELETE"]

/** Trusted values of Sec-Fetch-Site. Not "same-site": somebody else may own a sibling subdomain. */
const ownSites = ["same-origin", "none"]

/** Browsers never add these schemes by themselves: a script that knows the token sent them. */
const isSentByScript = ({ headers }: ApiRequest): boolean =>
  /^(bearer|portier) /i.test(headers["authorization"] ?? "")

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

const needsJson = errorIn(
  "header",
  "Content-Type",
  "Content-Type must be application/json for a request from another site"
)

/**
 * The error of a cross-site request that changes data; undefined when the request may go on.
 *
 * When every origin may call (`*`), a POST must declare JSON, with or without a body. Forms cannot
 * do that. Scripts can only after a preflight, which allows no credentials of the browser; other
 * methods always need one. When the settings list origins, the request must name one of them.
 *
 * Entries of a batch are not checked: the page itself wrote their headers. The request that carried
 * the batch was checked by the headers of the browser.
 */
export const crossSiteError = (
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
