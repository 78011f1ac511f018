// Who a shard of a broadcast goes to: the subscriptions of the users registered in it, as they were when the broadcast was accepted.
import { Effect } from "effect"
import type { ShardJob } from "#domain/job.ts"
import type { Registration } from "#domain/registration.ts"
import type { SubscriptionList } from "#domain/subscription.ts"
import { Buckets } from "#log/bucket.ts"
import type { LogUnavailable } from "#log/errors.ts"
import { keys, userOfKey } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Target } from "./push/send.ts"

/** Lists read in one request: 250 of the largest (1 MiB each) never come together, as a list of a usual user has 1 KB. */
const listsAtOnce = 250
const digits = [..."0123456789abcdef"]

/** Registered users, from one multi-get or, where the server refuses so many matches, from sixteen smaller ones. */
const registered = (
  channel: ChannelToken,
  shard: string,
  floor: number
): Effect.Effect<ReadonlyArray<readonly [string, Registration]>, LogUnavailable, Buckets> =>
  Effect.gen(function* () {
    const buckets = yield* Buckets
    const entries = yield* buckets.getMany("registrations", [keys.registrationsOf(channel, shard)], floor)
    if (entries !== undefined) return entries.map(({ key, value }) => [key, value as Registration] as const)
    const below = yield* Effect.forEach(digits, (digit) => registered(channel, shard === "all" ? digit : `${shard}.${digit}`, floor))
    return below.flat()
  })

/** The targets of a shard, in a fixed order. A registration or subscription made after the broadcast was accepted is not for it. */
export const audience = Effect.fnUntraced(function* ({ broadcast, channel, floor, shard }: ShardJob) {
  const buckets = yield* Buckets
  const places = yield* registered(channel as ChannelToken, shard, floor.registrations)
  const users = places.filter(([, { on, since }]) => on && since <= broadcast).map(([key]) => userOfKey(key))
  const targets: Array<Target> = []
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const lists = (yield* buckets.getMany("subscriptions", users.slice(i, i + listsAtOnce), floor.subscriptions)) ?? []
    for (const { key, value } of lists) {
      for (const [id, stored] of Object.entries((value as SubscriptionList).subscriptions)) {
        if (stored.seq <= broadcast) targets.push({ user: userOfKey(key), id, stored })
      }
    }
  }
  return targets
})
