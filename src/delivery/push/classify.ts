// The outcome table: what an answer of a push service, or the lack of one, means for the push and its subscription. Pure and total.
// Deleting a healthy subscriber is worse than one push too many: only 404 and 410 remove.

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

export type Answer =
  | {
      readonly status: number
      /** Lower-case names. */
      readonly headers: Readonly<Record<string, string>>
      /** The first bytes of the body, read for errors only. */
      readonly body: string
    }
  | { readonly error: string }

const parsedRetryAfter = (value: string | undefined, now: number): { readonly retryAfterMillis?: number } => {
  if (value === undefined) return {}
  // RFC 9110 section 10.2.3: delay-seconds or an HTTP-date. Anything else counts as absent.
  if (/^\d{1,9}$/.test(value.trim())) return { retryAfterMillis: Number(value) * 1000 }
  const date = Date.parse(value)
  return /^[A-Za-z]/.test(value.trim()) && date > now ? { retryAfterMillis: date - now } : {}
}

const mismatchWords = /VapidPkHashMismatch|do not correspond|MismatchSenderId|sender ID|public key mismatch/i
const credentialWords = /UnauthorizedRegistration|BadAuthorizationHeader|BadJwtToken|BadVapidPublicKey|ExpiredToken|VapidPkHashMismatch/i

// DNS, TCP, HTTP and time-outs pass; a certificate that fails may be a captive proxy and must never be argued away.
const passing: Readonly<Record<string, string>> = {
  ENOTFOUND: "dns",
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
  if (code === "ERR_CRYPTO_ECDH_INVALID_PUBLIC_KEY") return { class: "dead", reason: "invalid-key" }
  if (code === "ENDPOINT_NOT_ALLOWED") return { class: "dead", reason: "endpoint-not-allowed" }
  if (passing[code] !== undefined) return { class: "retry", reason: passing[code] }
  if (/CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|DEPTH_ZERO/.test(code)) return { class: "retry", reason: "tls" }
  return { class: "retry", reason: "network" }
}

const ofStatus = (status: number, words: string, host: string, headers: Readonly<Record<string, string>>, now: number): Classified => {
  const retryAfter = parsedRetryAfter(headers["retry-after"], now)
  if (/throttled/i.test(headers["x-wns-status"] ?? "") || /throttled/i.test(headers["x-wns-notificationstatus"] ?? "")) {
    return { class: "retry", reason: "throttled", ...retryAfter }
  }
  if (status >= 200 && status < 300) return { class: "accepted", reason: "accepted" }
  if (status >= 300 && status < 400) return { class: "dead", reason: "redirect" }
  if (status === 404 || status === 410) return { class: "gone", reason: "gone" }
  if (status === 429) return { class: "retry", reason: "throttled", ...retryAfter }
  if (status === 406 && host.endsWith(".notify.windows.com")) return { class: "retry", reason: "throttled", ...retryAfter }
  if ((status === 400 || status === 401 || status === 403) && mismatchWords.test(words))
    return { class: "mismatch", reason: "key-mismatch" }
  if (status === 401 || status === 403 || (status === 400 && credentialWords.test(words)))
    return { class: "credentials", reason: "credentials" }
  if (status === 413) return { class: "dead", reason: "too-large" }
  if (status === 501 || status === 505) return { class: "dead", reason: "refused" }
  if (status === 408 || status === 425 || status >= 500) return { class: "retry", reason: "server-error", ...retryAfter }
  return { class: "dead", reason: "refused" }
}

/** Judges one answer. `host` is the push service's, `now` milliseconds since the epoch (for a Retry-After that is a date). */
export const classify = (answer: Answer, host: string, now: number): Classified =>
  "error" in answer ? ofError(answer.error) : ofStatus(answer.status, answer.body, host, answer.headers, now)
