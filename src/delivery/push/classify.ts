// The outcome table: what an answer of a push service, or the lack of one, means for the push and its subscription. Pure and total.
// Deleting a healthy subscriber is worse than one push too many: only 404 and 410 remove, keys that nothing can be encrypted for, and
// a mismatch while our key is accepted from others (see ../push-service/push-service.ts).

/**
 * accepted: the push service has it. gone: the subscription is dead. retry: try later. dead: this push will never be taken.
 * credentials: our VAPID key or token was refused, for everybody at this origin. mismatch: this subscription was made with another key.
 */
export type OutcomeClass = "accepted" | "gone" | "retry" | "dead" | "credentials" | "mismatch"

export interface Classified {
  readonly class: OutcomeClass
  /** One word, fit for logs, metrics and audits. */
  readonly reason: string
  readonly retryAfterMillis?: number
}

interface Answered {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The first bytes of the body, read for errors only. */
  readonly body: string
}

export type Answer = Answered | { readonly error: string }

// RFC 9110 section 5.6.7: the usual form and the two that are only read. Date.parse alone takes nearly anything for a date.
const httpDate =
  /^(?:\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT|\w{6,9}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT|\w{3} \w{3} [\d ]\d \d\d:\d\d:\d\d \d{4})$/
/** 31 years: more digits than this mean the same. */
const retryAfterSecondsMax = 1e9

/** RFC 9110 section 10.2.3: delay-seconds or an HTTP-date still to come. Anything else counts as absent. */
const parsedRetryAfter = (
  value: string | undefined,
  now: number
): { readonly retryAfterMillis?: number } => {
  const text = value?.trim() ?? ""
  if (/^\d+$/.test(text))
    return { retryAfterMillis: Math.min(Number(text), retryAfterSecondsMax) * 1000 }
  if (!httpDate.test(text)) return {}
  const date = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`)
  return date > now ? { retryAfterMillis: date - now } : {}
}

// What push services write into a refusal for one subscription made with another key, and for our credentials, by status.
const mismatchWords: Readonly<Record<number, RegExp>> = {
  400: /VapidPkHashMismatch/i,
  401: /VAPID public key mismatch/i,
  403: /VapidPkHashMismatch|do not correspond|MismatchSenderId|sender ID/i
}
const credentialWords = /UnauthorizedRegistration|BadAuthorizationHeader/i
/** Apple and Mozilla (errno 113) on a Topic they do not take. */
const topicWords = /BadWebPushTopic|"errno"\s*:\s*113\b/i

// DNS, TCP, HTTP and time-outs pass; a certificate that fails may be a captive proxy and must never be argued away.
const passing: Readonly<Record<string, string>> = {
  ENOTFOUND: "unknown-host",
  EAI_AGAIN: "dns",
  ECONNREFUSED: "refused",
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
  UND_ERR_INFO: "reset"
}

const ofError = (code: string): Classified => {
  if (code === "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY") return { class: "gone", reason: "invalid-key" }
  if (code === "ENDPOINT_NOT_ALLOWED") return { class: "dead", reason: "endpoint-not-allowed" }
  if (code === "KEY_RETIRED") return { class: "dead", reason: "key-retired" }
  // Whose fault it is, our resolver's or the subscription's, strikes will tell.
  if (code === "ADDRESS_NOT_ALLOWED") return { class: "retry", reason: "address-not-allowed" }
  if (passing[code] !== undefined) return { class: "retry", reason: passing[code] }
  if (code.startsWith("ERR_HTTP2_")) return { class: "retry", reason: "reset" }
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|DEPTH_ZERO/.test(code))
    return { class: "retry", reason: "tls" }
  return { class: "retry", reason: "network" }
}

const isThrottled = (status: number, headers: Answered["headers"], host: string): boolean =>
  status === 429 ||
  (status === 406 && host.endsWith(".notify.windows.com")) ||
  (/throttled/i.test(`${headers["x-wns-status"]} ${headers["x-wns-notificationstatus"]}`) &&
    (status < 300 || status >= 400))

const isPassing = (status: number): boolean =>
  status === 408 || status === 425 || (status >= 500 && status !== 501 && status !== 505)

/** Refusals that speak of the request or the message (RFC 9110 section 15.5, 15.6): any subscription would get them. */
const ofTheRequest = new Set([400, 405, 406, 411, 414, 415, 422, 431, 501, 505])

/** A refusal that no other try changes: one word for why. */
const refusal = (status: number, body: string, headers: Answered["headers"]): string => {
  if (status >= 300 && status < 400) return "redirect"
  if (status === 413) return "too-large"
  if (status === 400 && topicWords.test(body)) return "bad-topic"
  if (status === 400 && /ttl/i.test(headers["x-wns-error-description"] ?? "")) return "bad-ttl"
  return ofTheRequest.has(status) ? "refused" : "unexpected"
}

const ofStatus = ({ body, headers, status }: Answered, host: string, now: number): Classified => {
  if (isThrottled(status, headers, host))
    return { class: "retry", reason: "throttled", ...parsedRetryAfter(headers["retry-after"], now) }
  if (status >= 200 && status < 300) return { class: "accepted", reason: "accepted" }
  if (status === 404 || status === 410) return { class: "gone", reason: "gone" }
  if (mismatchWords[status]?.test(body)) return { class: "mismatch", reason: "key-mismatch" }
  if (status === 401 || status === 403 || (status === 400 && credentialWords.test(body)))
    return { class: "credentials", reason: "credentials" }
  if (isPassing(status))
    return {
      class: "retry",
      reason: "server-error",
      ...parsedRetryAfter(headers["retry-after"], now)
    }
  return { class: "dead", reason: refusal(status, body, headers) }
}

/** Judges one answer. `host` is the push service's, `now` milliseconds since the epoch (for a Retry-After that is a date). */
export const classify = (answer: Answer, host: string, now: number): Classified =>
  "error" in answer ? ofError(answer.error) : ofStatus(answer, host, now)
