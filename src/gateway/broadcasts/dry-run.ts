// Counts the people and browsers that a broadcast would reach, in a part of a large audience.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type BroadcastBody, fitsOnePush } from "#domain/broadcast.ts"
import { shardDepth } from "#domain/job.ts"
import { type Recipients, usersIn } from "#domain/recipients.ts"
import { takes } from "#domain/subscription/subscription.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys, userOfKey } from "#streams/buckets.ts"
import { shardsAt, type UserToken } from "#streams/tokens.ts"
import { countRegistrations, eachList, registrationsUnder } from "#subscriptions/audience.ts"
import type { Call } from "../http/request.ts"
import { refuse } from "../http/response.ts"
import { RequestRates } from "../quotas.ts"

/**
 * Shards that are read, of at most 1,000 users each on average. Users are spread over shards by
 * hash, so the others are like these: with 16,000 read, the counts are right within 2 %.
 */
const shardsMax = 16

export const Reach = Schema.Struct({
  /** With a subscription that the broadcast would go to. */
  people: Schema.Int,
  browsers: Schema.Int,
  estimated: Schema.Boolean,
  without_subscription: Schema.optionalKey(Schema.Int),
  /** Channels that nobody is registered to; absent where there are none. */
  unjoined_channels: Schema.optionalKey(Schema.Array(Schema.String))
}).annotate({ identifier: "Reach" })

/** Whom a broadcast with `dry_run` would reach. */
export const dryRun = Effect.fnUntraced(function* (
  to: Recipients,
  body: BroadcastBody,
  { caller }: Call
) {
  if (!fitsOnePush(body)) return yield* refuse("payload-too-large")
  const buckets = yield* Buckets
  const { floor } = yield* (yield* Watermark).reached(0, 0)
  const registrations = yield* countRegistrations(buckets, to.channels)
  const shards = shardsAt(shardDepth(registrations + to.users.length))
  const read = shards.slice(0, shardsMax)
  yield* (yield* RequestRates).ofDryRun(caller!.user, read.length)
  const factor = shards.length / read.length
  const reach = { people: 0, browsers: 0 }
  for (const shard of read) {
    const filters = to.channels.map((channel) => keys.registrationsOf(channel, shard))
    const entries = yield* registrationsUnder(buckets, filters, floor.registrations)
    const registered = entries.flatMap(({ key, value }) => (value.on ? userOfKey(key) : []))
    const users = usersIn(to, shard, registered)
    const { browsers, people } = yield* reachOf(buckets, users, floor.subscriptions)
    reach.people += people * factor
    reach.browsers += browsers * factor
  }
  const found: typeof Reach.Type = { ...reach, estimated: factor > 1 }
  if (to.users.length === 0) return found
  const { people } = yield* reachOf(buckets, to.users, floor.subscriptions)
  return { ...found, without_subscription: to.users.length - people }
})

/** How many of these users have a subscription, and how many subscriptions they have. */
const reachOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<UserToken>,
  minRevision: number
) {
  let [people, browsers] = [0, 0]
  yield* eachList(buckets, users.map(keys.subscriptions), minRevision, ({ value }) => {
    const stored = Object.values(value.subscriptions).filter((each) =>
      takes(each, Number.POSITIVE_INFINITY)
    )
    browsers += stored.length
    if (stored.length > 0) people += 1
  })
  return { people, browsers }
})
