// The closed set of reasons: one word for why a push has its outcome. Dead letters, audits and
// broadcasts show these words, metrics only those that count as a strike against a subscription
// (strike.ts). src/delivery/README.md explains each. Pure.
import * as Schema from "effect/Schema"

/** Reasons for which a subscription is removed. */
export const goneReasons = ["gone", "key-mismatch", "invalid-key"] as const
export type GoneReason = (typeof goneReasons)[number]

/** Reasons for which a push is given up at once: no further attempt can succeed. */
export const deadReasons = [
  "redirect",
  "too-large",
  "bad-topic",
  "bad-ttl",
  "refused",
  "unexpected",
  "endpoint-not-allowed",
  "key-retired"
] as const
export type DeadReason = (typeof deadReasons)[number]

/** Reasons for which an attempt failed and another one is made. */
export const retryReasons = [
  "throttled",
  "dropped",
  "server-error",
  "unknown-host",
  "dns",
  "connection-refused",
  "reset",
  "unreachable",
  "timeout",
  "tls",
  "network",
  "proxy",
  "excessive",
  "address-not-allowed",
  "encryption"
] as const
export type RetryReason = (typeof retryReasons)[number]

/** The push service refused our VAPID key or token: `key-mismatch` for one subscription only. */
export const refusalReasons = ["credentials", "key-mismatch"] as const
export type RefusalReason = (typeof refusalReasons)[number]

/** Reasons for which a push waits without an attempt that counts. */
export const deferReasons = [
  ...refusalReasons,
  "breaker-open",
  "key-unknown",
  "push-service-slow",
  "push-service-throttled",
  "mass-gone",
  "unreachable"
] as const
export type DeferReason = (typeof deferReasons)[number]

/** Whether a push waits because its push service asked for fewer of them. */
export const isThrottling = (reason: StoredReason): boolean =>
  reason === "throttled" || reason === "push-service-throttled"

/** Reasons of pushes that end without an attempt. */
export const unsentReasons = [
  "left",
  "moved",
  "suspended",
  "expired",
  "cancelled",
  "internal"
] as const
export type UnsentReason = (typeof unsentReasons)[number]

/** The reason of one attempt, or of a deferral. */
export type AttemptReason = "accepted" | GoneReason | DeadReason | RetryReason | DeferReason

/**
 * The reason of a recorded outcome. Composed ones name the reason of the last attempt or deferral.
 */
export type Reason =
  | AttemptReason
  | UnsentReason
  | `expired:${RetryReason | DeferReason}`
  | `attempts-used-up:${RetryReason | RefusalReason}`

declare const unknownReason: unique symbol
/** A word that another version of Bellcast stored, and that this version does not know. */
export type UnknownReason = string & { readonly [unknownReason]: true }

/**
 * A reason as read from a stream: any text decodes, so that other versions' messages stay readable.
 */
export type StoredReason = Reason | UnknownReason
export const StoredReason = Schema.declare(
  (value): value is StoredReason => typeof value === "string"
)

/** Reasons that count as a strike wherever a push ends with them. */
const alwaysStrikes = [
  "unknown-host",
  "redirect",
  "unexpected",
  "address-not-allowed",
  "endpoint-not-allowed"
] as const satisfies ReadonlyArray<AttemptReason>
/** Reasons that count as a strike only when an attempt ended with them, not a deferral. */
const attemptStrikes = refusalReasons
/**
 * Refusals of the request, before or after it was taken. The request may be at fault, so they count
 * as a strike only when the push service took such requests from others. Not `too-large`: Mozilla
 * refuses for Android what it takes for desktops, and a shorter push would reach the same browser.
 */
const requestRefusals = [
  "refused",
  "bad-topic",
  "bad-ttl",
  "dropped"
] as const satisfies ReadonlyArray<DeadReason | RetryReason>

export const strikeReasons = [...alwaysStrikes, ...attemptStrikes, ...requestRefusals] as const
export type StrikeReason = (typeof strikeReasons)[number]

const isOneOf = <A extends string>(list: ReadonlyArray<A>, text: string): text is A =>
  (list as ReadonlyArray<string>).includes(text)

/** Returns the strike that the reason of a dead or expired push counts as; undefined: none. */
export const strikeReasonOf = (reason: StoredReason): StrikeReason | undefined => {
  const last = reason.slice(reason.indexOf(":") + 1)
  if (isOneOf(alwaysStrikes, last) || isOneOf(requestRefusals, last)) return last
  // An expired push may have been deferred with all others; an attempt that counts was refused
  // alone.
  return !reason.startsWith("expired:") && isOneOf(attemptStrikes, last) ? last : undefined
}

/** Whether a strike is a refusal of the request, for which the request may be at fault. */
export const isRequestRefusal = (cause: StrikeReason | undefined): boolean =>
  cause !== undefined && isOneOf(requestRefusals, cause)
