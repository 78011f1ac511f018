// Strikes against a subscription that cannot be reached though no push service called it gone.
// Three strikes over more than a day suspend it: it stays stored, and nothing is sent to it. Pure.
import { isUndelivered, type PushResult } from "../outcome.ts"
import { type StoredReason, type StrikeReason, strikeReasonOf } from "../reason.ts"
import type { SubscriptionStruck, SubscriptionSuspended } from "./command.ts"

export interface Strikes {
  readonly count: number
  /** The reason of the last strike. */
  readonly cause: StoredReason
  readonly firstAt: number
  readonly lastAt: number
}

export interface Suspension {
  readonly cause: StoredReason
  readonly at: number
}

/** Strikes until suspension, over more than as many intervals. */
const strikesMax = 3

/**
 * Returns the reason for which an ended push counts as a strike against its subscription;
 * undefined: none.
 */
export const strikeOf = ({
  fate,
  reason
}: Pick<PushResult, "fate" | "reason">): StrikeReason | undefined =>
  isUndelivered(fate) ? strikeReasonOf(reason) : undefined

/** The settings forbid the endpoint, so the first strike suspends. */
const suspendsAtOnce = (cause: StoredReason): boolean => cause === "endpoint-not-allowed"

/**
 * Returns what evidence at `now` leads to: the number of the next strike, suspension, or undefined
 * where the last strike is less than `intervalMillis` old. With 8 hours, three strikes take more
 * than a day.
 */
export const strike = (
  strikes: Strikes | undefined,
  cause: StrikeReason,
  now: number,
  intervalMillis: number
): number | "suspend" | undefined => {
  if (suspendsAtOnce(cause)) return "suspend"
  if (strikes === undefined) return 1
  if (now - strikes.lastAt < intervalMillis) return undefined
  const isLast =
    strikes.count + 1 >= strikesMax && now - strikes.firstAt > strikesMax * intervalMillis
  return isLast ? "suspend" : strikes.count + 1
}

/** The strikes of a subscription, and its suspension. Clients do not see them. */
export interface Judged {
  /** A delivered push or a put clears them. */
  readonly strikes?: Strikes
  /** Pushes to it stop. */
  readonly suspended?: Suspension
}

export const withStrike = <A extends Judged>(
  stored: A,
  { at, cause, strike }: SubscriptionStruck
): A => {
  // Two workers may record the same strike, or one may have read an older list.
  if (stored.suspended !== undefined || strike !== (stored.strikes?.count ?? 0) + 1) return stored
  const firstAt = stored.strikes?.firstAt ?? at
  return { ...stored, strikes: { count: strike, cause, firstAt, lastAt: at } }
}

export const withSuspension = <A extends Judged>(
  { strikes, ...stored }: A,
  { at, cause }: SubscriptionSuspended
): Omit<A, "strikes"> => {
  // A push was delivered after this evidence, and cleared the strikes.
  if (!suspendsAtOnce(cause) && (strikes?.count ?? 0) < strikesMax - 1)
    return { ...stored, ...(strikes === undefined ? {} : { strikes }) }
  return { suspended: { cause, at }, ...stored }
}
