// The headers that every response may have: security, CORS, Backoff, Alert, Retry-After.
import * as Option from "effect/Option"
import { asciiJson } from "#basics/json.ts"
import type { GatewaySettings } from "../settings.ts"
import { corsHeaders } from "./cors.ts"
import { docsUrl } from "./links.ts"
import type { ApiRequest, ApiResponse } from "./request.ts"
import type { Endpoint } from "./routing.ts"

/** Lets clients cache a response for some seconds. */
export const expiringIn = (seconds: number, now: number): Record<string, string> => ({
  "Cache-Control": `max-age=${seconds}`,
  Expires: new Date(now + seconds * 1000).toUTCString()
})

/**
 * For data that the user's next request may change. Without this header a cache may reuse a
 * response with Last-Modified for a tenth of its age (RFC 9111 section 4.2.2).
 */
export const noStore = { "Cache-Control": "no-cache, no-store" } as const

/** Headers of every response. */
export const constantHeaders = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
}

/** Whether the same request may succeed later: then the response has Retry-After. */
export const isTryLater = ({ error, status }: Pick<ApiResponse, "error" | "status">): boolean =>
  status >= 500 || status === 429 || error === "too-many-writes"

/** The end of service in milliseconds since the epoch. A date means its midnight, local time. */
export const endOfService = (eos: string): number =>
  new Date(/^\d{4}-\d{2}-\d{2}$/.test(eos) ? `${eos}T00:00:00` : eos).getTime()

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
    ...constantHeaders,
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
