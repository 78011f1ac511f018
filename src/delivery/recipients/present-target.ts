// The subscription of a push, as its user has it now.
import * as Effect from "effect/Effect"
import type { RetryJob } from "#domain/job.ts"
import type { Recipients } from "#domain/recipients.ts"
import { isMoved } from "#domain/subscription/owners.ts"
import { storedIn } from "#domain/subscription/subscription.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Target } from "../attempt.ts"

/** Why a subscription gets nothing any more: another user stored it, or its user ended it. */
export type Gone = "moved" | "left"

/** Returns the subscription `id` of a user if it is the one that was stored by `generation`. */
export const storedNow = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  user: UserToken,
  id: string,
  generation: number
) {
  const list = yield* buckets.get("subscriptions", keys.subscriptions(user))
  if (list !== undefined && isMoved(list.value, id)) return "moved" as const
  const stored = list && storedIn(list.value, id)
  return stored?.seq === generation ? stored : ("left" as const)
})

/**
 * Returns the present subscription, or why the push ends: the subscription was removed or replaced,
 * another user stored it, or its user left all channels of the broadcast and is not named in it.
 */
export const presentTarget = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  job: RetryJob,
  { channels, users }: Recipients
) {
  const user = job.user as UserToken
  const stored = yield* storedNow(buckets, user, job.subscription, job.generation)
  if (typeof stored === "string") return stored
  const target: Target = { user, id: job.subscription, stored }
  if (users.includes(user)) return target
  for (const channel of channels) {
    const place = yield* buckets.get("registrations", keys.registration(channel, user))
    if (place?.value.on === true) return target
  }
  return "left" as const
})
