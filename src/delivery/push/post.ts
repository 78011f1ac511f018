// One request to a push service, and what its response, or the lack of one, means for the push and
// its subscription. Connections are reused, every wait has a bound, responses are read no further
// than needed, and redirects are not followed. `classify` is pure and total. Deleting a healthy
// subscription is worse than one push too many. So only 404 and 410 remove a subscription here. A
// mismatch removes one only while our key is accepted from others (see
// ../push-service/push-service.ts).
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { checkedLookup } from "#basics/address-filter.ts"
import { Group } from "#children/group.ts"
import { type Moment, moment } from "#clock/clocks.ts"
import { Settings } from "#config"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import type { DeadReason, RetryReason } from "#domain/reason.ts"
import { OutgoingProxy } from "#settings/addresses.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import type { ResponseResult, Target } from "../attempt.ts"
import { Origins } from "../push-service/origins.ts"
import type { PushService } from "../push-service/push-service.ts"
import {
  type Answer,
  limitsOf,
  type NoAnswer,
  type PushResponse,
  type Request as WireRequest
} from "./transport/exchange.ts"
import { Peer } from "./transport/peer.ts"

const warnOfClock = makeRateLimitedLog(
  "a push service refuses our credentials and its clock is not ours: a token that has ended, or " +
    "ends in more than a day, is refused; compare the clock of NATS with an NTP server",
  Effect.logError
)

/** The request of one attempt. Further tries change its headers. */
export interface Request {
  readonly pushService: PushService
  /** VAPID public key. */
  readonly key: string
  readonly target: Target
  readonly expiresAt: number
  /** Latest start of another try, in milliseconds of the monotonic clock. */
  readonly lastTryAt: number
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array | undefined
  readonly isWithdrawn: () => boolean
  readonly waitMillisMax: number
  /** Milliseconds that its requests have waited for a connection. */
  waitedMillis: number
}

export interface Received {
  readonly response: PushResponse
  readonly result: ResponseResult
  readonly at: Moment
  /** Judges the response: the push service as used with the key that was tried last. */
  readonly pushService: PushService
}

/** Sends one request of an attempt, and says what its response means. */
export const post = Effect.fnUntraced(function* (request: Request) {
  const client = yield* PushClient
  const { body, expiresAt, headers, isWithdrawn, path, pushService, waitMillisMax } = request
  const { host, origin } = pushService
  headers["ttl"] = ttlOf(expiresAt, yield* Clock.currentTimeMillis)
  const response = yield* client.post({ origin, path, headers, body, isWithdrawn, waitMillisMax })
  if (!("error" in response)) request.waitedMillis += response.waitedMillis
  const at = yield* moment
  const result = classify(response, host, at.at)
  const ahead = "error" in response ? 0 : clockAhead(response.headers["date"], at.at)
  if (result.reason === "credentials" && ahead !== 0)
    yield* warnOfClock({ host, aheadSeconds: Math.round(ahead / 1000) })
  const received: Received = { response, result, at, pushService }
  return received
})

/** Seconds to live. At least 1: WNS refuses 0 (webpush-go #66). */
const ttlOf = (expiresAt: number, now: number): string =>
  String(Math.min(Math.max(1, Math.ceil((expiresAt - now) / 1000)), ttlSecondsMax))

export class PushClient extends Context.Service<
  PushClient,
  {
    /** Never fails: an error is a response too. */
    readonly post: (
      request: WireRequest & { readonly origin: string }
    ) => Effect.Effect<PushResponse>
  }
>()("bellcast/delivery/PushClient") {
  static readonly layer = Layer.effect(
    PushClient,
    Effect.gen(function* () {
      const { allowLoopbackEndpoints, http2, pushesUnderWayMax, pushTimeoutMillis } =
        yield* Settings
      const { part } = yield* Group
      const options = {
        http2,
        connectionsMax: part(pushesUnderWayMax),
        limits: limitsOf(pushTimeoutMillis),
        lookup: checkedLookup(allowLoopbackEndpoints),
        proxy: yield* OutgoingProxy
      }
      const peers = (yield* Origins).table(
        ({ name }) => new Peer(name, options),
        (peer) => peer.close()
      )
      yield* Effect.addFinalizer(() =>
        Effect.promise(() => Promise.all([...peers.all()].map((peer) => peer.destroy())))
      )
      const post = ({ origin, ...request }: WireRequest & { readonly origin: string }) =>
        Effect.callback<PushResponse>((resume) =>
          peers.of(origin).post(request, (response) => resume(Effect.succeed(response)))
        )
      return PushClient.of({ post })
    })
  )
}

/**
 * Judges one response. `host` is the push service's. `now`, milliseconds since the epoch, is needed
 * for a Retry-After that is a date, in a response without Date.
 */
export const classify = (response: Answer | NoAnswer, host: string, now: number): ResponseResult =>
  "error" in response
    ? { kind: "failed", reason: reasonOfError(response.error) }
    : ofStatus(response, host, now)

const ofStatus = (response: Answer, host: string, now: number): ResponseResult => {
  const { body, headers, status } = response
  const failed = (reason: RetryReason): ResponseResult => ({
    kind: "failed",
    reason,
    ...parsedRetryAfter(headers, now)
  })
  const wnsWord = wnsWordOf(headers)
  if (isThrottled(status, wnsWord, host)) return failed("throttled")
  if (status >= 200 && status < 300)
    return wnsWord === "dropped" ? failed(wnsWord) : { kind: "delivered", reason: "accepted" }
  if (status === 404 || status === 410) return { kind: "gone", reason: "gone" }
  if (mismatchWords[status]?.test(body)) return { kind: "failed", reason: "key-mismatch" }
  if (status === 401 || status === 403 || (status === 400 && credentialWords.test(body)))
    return { kind: "failed", reason: "credentials" }
  if (isTransient(status)) return failed("server-error")
  return { kind: "dead", reason: deadReasonOf(response) }
}

/** 31 years. Longer waits are cut, so that the number stays a safe integer. */
const retryAfterSecondsMax = 1e9

/**
 * RFC 9110 section 10.2.3: delay-seconds or a future HTTP-date. Anything else counts as absent. A
 * date counts from the Date of the same response: both are of the same clock.
 */
const parsedRetryAfter = (
  headers: Answer["headers"],
  now: number
): { readonly retryAfterMillis?: number } => {
  const text = headers["retry-after"]?.trim() ?? ""
  // A push service and a proxy before it may both set it.
  if (/^\d+(\s*,\s*\d+)*$/.test(text)) {
    const seconds = Math.max(...text.split(",").map(Number))
    return { retryAfterMillis: Math.min(seconds, retryAfterSecondsMax) * 1000 }
  }
  const date = parsedHttpDate(text)
  const sent = parsedHttpDate(headers["date"]) ?? now
  return date !== undefined && date > sent ? { retryAfterMillis: date - sent } : {}
}

/** By status: bodies of a refusal for one subscription that was made with another key. */
const mismatchWords: Readonly<Record<number, RegExp>> = {
  400: /VapidPkHashMismatch/i,
  401: /VAPID public key mismatch/i,
  403: /VapidPkHashMismatch|do not correspond|MismatchSenderId|sender ID/i
}
/** Bodies of a refusal of our credentials with status 400. */
const credentialWords = /UnauthorizedRegistration|BadAuthorizationHeader/i
/** Bodies with which Apple and Mozilla (errno 113) refuse a Topic. */
const topicWords = /BadWebPushTopic|"errno"\s*:\s*113\b/i

const errorReasons: Readonly<Record<string, RetryReason>> = {
  ENOTFOUND: "unknown-host",
  EAI_AGAIN: "dns",
  ECONNREFUSED: "connection-refused",
  ECONNRESET: "reset",
  EPIPE: "reset",
  EHOSTUNREACH: "unreachable",
  ENETUNREACH: "unreachable",
  ETIMEDOUT: "timeout",
  UND_ERR_SOCKET: "reset",
  UND_ERR_CONNECT_TIMEOUT: "timeout",
  UND_ERR_HEADERS_TIMEOUT: "timeout",
  UND_ERR_BODY_TIMEOUT: "timeout",
  UND_ERR_ABORTED: "timeout",
  UND_ERR_INFO: "reset",
  BELLCAST_EXCESSIVE: "excessive",
  BELLCAST_PROXY: "proxy",
  // Our own resolver may be at fault, or the subscription; strikes tell them apart.
  ADDRESS_NOT_ALLOWED: "address-not-allowed"
}

/** The reason of a push without a response. */
export const reasonOfError = (code: string): RetryReason => {
  const known = errorReasons[code]
  if (known !== undefined) return known
  if (code.startsWith("ERR_HTTP2_")) return "reset"
  // A captive proxy causes these too, so they pass; never send without a valid certificate.
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|DEPTH_ZERO/.test(code)) return "tls"
  return "network"
}

/**
 * What Microsoft's WNS says besides the status, with a 2xx too: `received`, `dropped`,
 * `channelthrottled` or `appthrottled`. An unknown word is taken for `received`, because a push
 * that was taken must not be sent again.
 */
const wnsWordOf = (headers: Answer["headers"]): "throttled" | "dropped" | undefined => {
  const status = headers["x-wns-status"]
  const notificationStatus = headers["x-wns-notificationstatus"]
  if (status === undefined && notificationStatus === undefined) return undefined
  const words = `${status} ${notificationStatus}`
  if (/throttled/i.test(words)) return "throttled"
  return /\bdropped\b/i.test(words) ? "dropped" : undefined
}

const isThrottled = (status: number, wnsWord: string | undefined, host: string): boolean =>
  status === 429 ||
  (status === 406 && host.endsWith(".notify.windows.com")) ||
  (wnsWord === "throttled" && (status < 300 || status >= 400))

const isTransient = (status: number): boolean =>
  status === 408 || status === 425 || (status >= 500 && status !== 501 && status !== 505)

/**
 * Refusals of the request or message as such (RFC 9110 sections 15.5, 15.6), for any subscription.
 */
const requestRefusals = new Set([400, 405, 406, 411, 414, 415, 422, 431, 501, 505])

/** The reason of a refusal that no further attempt changes. */
const deadReasonOf = ({ body, headers, status }: Answer): DeadReason => {
  if (status >= 300 && status < 400) return "redirect"
  if (status === 413) return "too-large"
  if (status === 400 && topicWords.test(body)) return "bad-topic"
  if (status === 400 && /ttl/i.test(headers["x-wns-error-description"] ?? "")) return "bad-ttl"
  return requestRefusals.has(status) ? "refused" : "unexpected"
}

// RFC 9110 section 5.6.7: the usual form and two obsolete ones. Date.parse alone accepts nearly any
// text.
const forms = [
  /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^\w{6,9}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^\w{3} \w{3} [\d ]\d \d\d:\d\d:\d\d \d{4}$/
]

/** Milliseconds since the epoch; undefined: no date of RFC 9110. */
const parsedHttpDate = (value: string | undefined): number | undefined => {
  const text = value?.trim() ?? ""
  if (!forms.some((form) => form.test(text))) return undefined
  const date = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`)
  return Number.isNaN(date) ? undefined : date
}

/** A smaller difference is that of the way, or of two clocks that are well kept. */
const wrongMillisMin = 60_000

/**
 * Returns by how many milliseconds the clock of a push service is ahead of ours at `now`, as its
 * header Date says; negative: behind. 0: no more than a minute, or no such header.
 */
export const clockAhead = (date: string | undefined, now: number): number => {
  const ahead = (parsedHttpDate(date) ?? now) - now
  return Math.abs(ahead) > wrongMillisMin ? ahead : 0
}
