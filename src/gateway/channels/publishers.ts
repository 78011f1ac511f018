// Who may publish: the principals in the settings, on every channel, and those in the permissions
// of a channel. And who may name users in a request.
import * as Effect from "effect/Effect"
import { matchesWildcard } from "#basics/wildcard.ts"
import { Settings } from "#config"
import { noPublishers } from "#domain/publisher.ts"
import type { Caller } from "#identity/identity.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { channelToken } from "#streams/tokens.ts"
import { isChannelId } from "./id.ts"

/** Reads the permission at every request, so that a removal takes effect at once. */
export const mayPublish = Effect.fnUntraced(function* (
  { principals, rights }: Caller,
  channel: string
) {
  if (rights !== undefined) return rights.channels.some((each) => matchesWildcard(each, channel))
  const { channelWritePrincipals } = yield* Settings
  const isNamed = channelWritePrincipals.some(
    ({ channels, principal }) =>
      principals.includes(principal) && matchesWildcard(channels, channel)
  )
  if (isNamed) return true
  if (!isChannelId(channel)) return false
  const entry = yield* (yield* Buckets).get("permissions", keys.publishers(channelToken(channel)))
  const named = entry?.value ?? noPublishers
  return principals.some((principal) => named.principals.includes(principal))
})

/** Whether the caller has the right `users`: to name users in a request, and to act for them. */
export const mayUseUsers = Effect.fnUntraced(function* ({ principals, rights }: Caller) {
  if (rights !== undefined) return rights.users
  const { userWritePrincipals } = yield* Settings
  return principals.some((principal) => userWritePrincipals.includes(principal))
})
