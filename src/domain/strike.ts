// What is held against a subscription that cannot be reached though it was never called gone: strikes, and after three of them, a day apart,
// its suspension. A suspended subscription is kept and not sent to. Pure.
import { Schema } from "effect"
import type { PushResult } from "./outcome.ts"
import { Timestamp } from "./timestamp.ts"

/** `generation` is the sequence of the put that stored it. */
const named = { id: Schema.String, generation: Schema.Int }
const evidence = {
  ...named,
  broadcast: Schema.Int,
  /** A word, that of the push's outcome. */
  cause: Schema.String,
  /** HTTP status of the push service, when there was an answer. */
  status: Schema.optionalKey(Schema.Int),
  /** Who saw it: host and process. */
  worker: Schema.String,
  at: Timestamp
}

/** A push to it came to its end for a reason that speaks against this subscription alone; `strike` counts from 1. */
export const SubscriptionStruck = Schema.Struct({ ...evidence, strike: Schema.Int })
export type SubscriptionStruck = typeof SubscriptionStruck.Type

/** The last of three strikes, or an endpoint that the settings forbid: nothing is sent to it any more. */
export const SubscriptionSuspended = Schema.Struct(evidence)
export type SubscriptionSuspended = typeof SubscriptionSuspended.Type

/** Nothing is held against it any more: a push arrived, its user stored it again, or an operator restored it. */
export const SubscriptionCleared = Schema.Struct({
  ...named,
  by: Schema.Literals(["push", "user", "operator"]),
  at: Timestamp
})
export type SubscriptionCleared = typeof SubscriptionCleared.Type

export interface Strikes {
  readonly count: number
  /** Of the last one. */
  readonly cause: string
  readonly firstAt: number
  readonly lastAt: number
}

export interface Suspension {
  readonly cause: string
  readonly at: number
}

/** So many strikes, over more than as many intervals. */
export const strikesMax = 3

/** Why a push that ended speaks against its subscription; undefined: it does not. */
export const strikeOf = ({
  fate,
  reason
}: Pick<PushResult, "fate" | "reason">): string | undefined => {
  if (fate !== "dead" && fate !== "expired") return undefined
  const cause = reason.slice(reason.indexOf(":") + 1)
  if (
    [
      "unknown-host",
      "redirect",
      "unexpected",
      "address-not-allowed",
      "endpoint-not-allowed"
    ].includes(cause)
  )
    return cause
  // Held back with all others, it may have expired for this reason too; an attempt that counts was refused to it alone.
  return !reason.startsWith("expired:") && ["credentials", "key-mismatch"].includes(cause)
    ? cause
    : undefined
}

/** Where nothing may be sent there is nothing to wait for. */
export const suspendsAtOnce = (cause: string): boolean => cause === "endpoint-not-allowed"

/**
 * What evidence at `now` leads to: the next strike, suspension, or nothing, as the last strike is less than `intervalMillis` old. With 8 hours
 * that is three strikes over more than a day.
 */
export const strike = (
  strikes: Strikes | undefined,
  cause: string,
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
