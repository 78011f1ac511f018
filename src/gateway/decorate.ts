// Headers that do not depend on what was asked: security, CORS, Backoff, Alert, Retry-After.
import { Clock, Effect, Option, Random } from "effect"
import { Settings } from "#config"
import { asciiJson } from "#domain/json.ts"
import type { Answer, Ask } from "./ask.ts"
import { corsHeaders } from "./cors.ts"
import { docsUrl } from "./links.ts"
import type { Endpoint } from "./operation.ts"
import { GatewaySettings } from "./settings.ts"

/** Lets a client keep an answer; negative: nothing is said. */
export const expiringIn = (seconds: number, now: number): Record<string, string> =>
  seconds < 0 ? {} : { "Cache-Control": `max-age=${seconds}`, Expires: new Date(now + seconds * 1000).toUTCString() }

/** Of every answer. */
export const constantHeaders = {
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
}

const isTryLater = (status: number): boolean => status >= 500 || status === 409 || status === 429

/** A date means its midnight, local time. */
export const endOfService = (eos: string): number => new Date(/^\d{4}-\d{2}-\d{2}$/.test(eos) ? `${eos}T00:00:00` : eos).getTime()

export const decorate = Effect.fnUntraced(function* (ask: Ask, answer: Answer, endpoint: Endpoint | undefined, rootUrl: string) {
  const settings = yield* GatewaySettings
  const headers: Record<string, string> = {
    ...constantHeaders,
    ...corsHeaders(ask, settings.corsOrigins, endpoint, answer.status)
  }
  // The end of the service goes before that of a parameter.
  const endings: Record<string, string> = {}
  if (settings.backoff > 0 && (settings.backoffPercentage >= 100 || (yield* Random.next) * 100 < settings.backoffPercentage)) {
    headers["Backoff"] = String(settings.backoff)
  }
  if (isTryLater(answer.status)) headers["Retry-After"] = String((yield* Settings).retryAfterSeconds)
  if (Option.isSome(settings.eos)) {
    const over = (yield* Clock.currentTimeMillis) >= endOfService(settings.eos.value)
    endings["Alert"] = asciiJson({
      code: over ? "hard-eol" : "soft-eol",
      message: settings.eosMessage === "" ? null : settings.eosMessage,
      url: settings.eosUrl === "" ? docsUrl(settings, rootUrl) : settings.eosUrl
    })
  }
  const vary = [headers["Vary"], answer.headers["Vary"]].filter((name) => name !== undefined).join(", ")
  return { ...answer, headers: { ...headers, ...answer.headers, ...endings, ...(vary === "" ? {} : { Vary: vary }) } }
})
