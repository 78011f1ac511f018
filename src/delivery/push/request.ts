// The parts of a push request, and the push as its push service sees it. Pure.

import { type Moment, monotonicOf } from "#clock/moment.ts"
import { ttlSecondsMax } from "#domain/broadcast.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { pushKey } from "#domain/outcome.ts"
import type { StoredReason } from "#domain/reason.ts"
import type { Push } from "../push-service/push.ts"
import type { Target } from "./target.ts"

export const pushOf = (
  target: Target,
  ref: BroadcastRef,
  lastReason: StoredReason | undefined,
  sentAt: Moment
): Push => ({
  subscription: pushKey(target.user, target.id),
  user: target.user,
  generation: target.stored.seq,
  broadcast: ref.broadcast,
  saidGone: lastReason === "mass-gone",
  acceptedAt: monotonicOf(sentAt, ref.acceptedAt),
  storedAt: monotonicOf(sentAt, target.stored.lastModified),
  sentAt: sentAt.monotonic
})

export const headersOf = (
  ref: BroadcastRef,
  authorization: string,
  hasBody: boolean
): Record<string, string> => ({
  urgency: ref.urgency,
  authorization,
  ...(ref.topic === undefined ? {} : { topic: ref.topic }),
  ...(hasBody
    ? { "content-encoding": "aes128gcm", "content-type": "application/octet-stream" }
    : {})
})

/** Seconds to live. At least 1: WNS refuses 0 (webpush-go #66). */
export const ttlOf = (expiresAt: number, now: number): string =>
  String(Math.min(Math.max(1, Math.ceil((expiresAt - now) / 1000)), ttlSecondsMax))
