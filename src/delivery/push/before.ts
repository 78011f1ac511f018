// Why a push must not be sent, found out before anything is sent. Pure.

import { type BroadcastRef, throttledBaseMillis } from "#domain/job.ts"
import { checkEndpoint, type EndpointPolicy } from "#domain/subscription/endpoint.ts"
import type { AttemptResult } from "../attempt-result.ts"
import type { Sealed } from "./sealed.ts"
import type { Target } from "./target.ts"

export interface Conditions {
  readonly policy: EndpointPolicy
  readonly retryBaseMillis: number
  /** Why nothing can be signed with the push's VAPID key; undefined: it can. */
  readonly keyFault: "retired" | "unknown" | undefined
}

/** Returns what a push comes to at `now` without being sent; undefined: send it. */
export const unsendable = (
  { keyFault, policy, retryBaseMillis }: Conditions,
  target: Target,
  ref: BroadcastRef,
  sealed: Sealed,
  now: number
): AttemptResult | undefined => {
  // The push may have expired while it waited in the send queue.
  if (now >= ref.expiresAt) return { kind: "expired", reason: "expired:lane-slow" }
  if (sealed === "invalid-key") return { kind: "gone", reason: sealed }
  if (sealed === "encryption") return { kind: "failed", reason: sealed }
  // The settings may have changed since registration, and sockets do not look up literal addresses.
  if (checkEndpoint(target.stored.data.endpoint, policy) !== undefined)
    return { kind: "dead", reason: "endpoint-not-allowed" }
  if (keyFault === "retired") return { kind: "dead", reason: "key-retired" }
  // A new key that other workers have already. One of them takes the push, or this one after its
  // restart.
  if (keyFault === "unknown")
    return {
      kind: "deferred",
      reason: "key-unknown",
      waitMillis: throttledBaseMillis(retryBaseMillis)
    }
  return undefined
}
