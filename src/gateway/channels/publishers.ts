// Who may publish: those whom the settings name, on every channel, and those whom an operator named for this one.
import { Effect } from "effect"
import { Settings } from "#config"
import { noPublishers } from "#domain/publisher.ts"
import type { Caller } from "#identity/identity.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import { channelToken } from "#streams/tokens.ts"
import { isChannelId } from "./id.ts"

/** As of now: what an operator took away is refused from the next request on. */
export const mayPublish = Effect.fnUntraced(function* ({ principals }: Caller, channel: string) {
  const { channelWritePrincipals } = yield* Settings
  if (principals.some((principal) => channelWritePrincipals.includes(principal))) return true
  if (!isChannelId(channel)) return false
  const entry = yield* (yield* Buckets).get("permissions", keys.publishers(channelToken(channel)))
  const named = entry?.value ?? noPublishers
  return principals.some((principal) => named.principals.includes(principal))
})
