// Requests that another site's page sends through a user's browser (CSRF). A browser adds what it
// remembers to them: Basic credentials, or a cookie for a proxy in front. Pure.

import type { AnyOperation } from "../operation.ts"
import { allowedOrigin, anyOrigin, foreignOrigin } from "./cors.ts"
import type { ErrorDetail } from "./errors.ts"
import { declaresJson } from "./media.ts"
import type { ApiRequest } from "./request.ts"

const changing = ["POST", "PUT", "PATCH", "DELETE"]

/** Of Sec-Fetch-Site. A sibling subdomain ("same-site") may be anybody's, so it is not here. */
const ownSites = ["same-origin", "none"]

/** Schemes that no browser adds by itself: a script that knows the token has sent it. */
const isSentByScript = ({ headers }: ApiRequest): boolean =>
  /^(bearer|portier) /i.test(headers["authorization"] ?? "")

/** Curl and servers send neither header. Browsers before 2023 send Origin only. */
const isCrossSite = ({ headers }: ApiRequest, ownOrigin: string): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined) return !ownSites.includes(site.trim().toLowerCase())
  const { origin } = headers
  return origin !== undefined && origin.toLowerCase() !== ownOrigin.toLowerCase()
}

const needsJson: ErrorDetail = {
  location: "header",
  name: "Content-Type",
  description: "Content-Type must be application/json for a request from another site"
}

/**
 * What is wrong with a request that changes something and comes from another site's page.
 *
 * Where every origin may call (`*`), such a request must declare JSON, with a body or without:
 * forms cannot, and scripts may only after a preflight, which never allows credentials that the
 * browser adds by itself. Where origins are configured, it must name one of them.
 *
 * An entry of a batch is not judged: its headers are text in a body that the page has written, and
 * the request that carried the batch has been judged with the headers of the browser.
 */
export const crossSiteError = (
  request: ApiRequest,
  { crossSite }: AnyOperation,
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
  return isSentByScript(request) || declaresJson(request) ? undefined : needsJson
}
