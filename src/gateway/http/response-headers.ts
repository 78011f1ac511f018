// Headers that do not depend on what was asked: security, CORS, Backoff, Alert, Retry-After.
import { Option } from "effect"
import { asciiJson } from "#domain/json.ts"
import type { Endpoint } from "../operation.ts"
import type { GatewaySettings } from "../settings.ts"
import { corsHeaders } from "./cors.ts"
import { docsUrl } from "./links.ts"
import type { ApiRequest, ApiResponse } from "./request.ts"

/** Lets a client keep an answer; negative: nothing is said. */
export const expiringIn = (seconds: number, now: number): Record<string, string> =>
  seconds < 0
    ? {}
    : {
        "Cache-Control": `max-age=${seconds}`,
        Expires: new Date(now + seconds * 1000).toUTCString()
      }

/** Of what a user's next request may change: an answer that only says when it last changed is kept for a tenth of its age (RFC 9111 section 4.2.2). */
export const noStore = { "Cache-Control": "no-cache, no-store" } as const

/** Of every answer. */
export const constantHeaders = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
}

/** Whether the same request may be answered better after a while. */
export const isTryLater = (status: number): boolean =>
  status >= 500 || status === 409 || status === 429

/** A date means its midnight, local time. */
export const endOfService = (eos: string): number =>
  new Date(/^\d{4}-\d{2}-\d{2}$/.test(eos) ? `${eos}T00:00:00` : eos).getTime()

/** What an answer carries beside its own headers depends on. */
interface Surroundings {
  readonly settings: GatewaySettings["Service"]
  readonly retryAfterSeconds: number
  readonly rootUrl: string
  readonly now: number
  /** In [0, 1). */
  readonly random: number
}

export const addCommonHeaders = (
  request: ApiRequest,
  response: ApiResponse,
  endpoint: Endpoint | undefined,
  surroundings: Surroundings
): ApiResponse => {
  const { now, random, retryAfterSeconds, rootUrl, settings } = surroundings
  const headers: Record<string, string> = {
    ...constantHeaders,
    ...corsHeaders(request, settings.corsOrigins, endpoint, response.status)
  }
  // The end of the service goes before that of a parameter.
  const endings: Record<string, string> = {}
  if (settings.backoff > 0 && random * 100 < settings.backoffPercentage) {
    headers["Backoff"] = String(settings.backoff)
  }
  if (isTryLater(response.status)) headers["Retry-After"] = String(retryAfterSeconds)
  if (Option.isSome(settings.eos)) {
    const over = now >= endOfService(settings.eos.value)
    endings["Alert"] = asciiJson({
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
    headers: { ...headers, ...response.headers, ...endings, ...(vary === "" ? {} : { Vary: vary }) }
  }
}
