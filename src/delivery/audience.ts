// Who a shard of a broadcast goes to: the subscriptions of the users registered in it, as they were when the broadcast was accepted.
import { Effect } from "effect"
import type { ShardJob } from "#domain/job.ts"
import type { Registration } from "#domain/registration.ts"
import type { SubscriptionList } from "#domain/subscription.ts"
import { Buckets, type Entry } from "#log/bucket.ts"
import { LogUnavailable } from "#log/errors.ts"
import { keys, userOfKey } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Target } from "./push/send.ts"

/** Lists read in one request. A usual one has 1 KB. */
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

/** The lists of these users; in halves where one answer cannot hold them. */
const listsOf = (users: ReadonlyArray<string>, floor: number): Effect.Effect<ReadonlyArray<Entry>, LogUnavailable, Buckets> =>
  Effect.gen(function* () {
    const buckets = yield* Buckets
    const entries = yield* buckets.getMany("subscriptions", users, floor)
    if (entries !== undefined) return entries
    if (users.length === 1) return yield* new LogUnavailable({ operation: "read subscriptions", cause: new Error("one list is too large") })
    const half = Math.ceil(users.length / 2)
    const parts = yield* Effect.forEach([users.slice(0, half), users.slice(half)], (part) => listsOf(part, floor))
    return parts.flat()
  })

/** The targets of a shard, in a fixed order. A registration or subscription made after the broadcast was accepted is not for it. */
export const audience = Effect.fnUntraced(function* ({ broadcast, channel, floor, shard }: ShardJob) {
  const places = yield* registered(channel as ChannelToken, shard, floor.registrations)
  const users = places.filter(([, { on, since }]) => on && since <= broadcast).map(([key]) => userOfKey(key))
  const targets: Array<Target> = []
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const lists = yield* listsOf(users.slice(i, i + listsAtOnce), floor.subscriptions)
    for (const { key, value } of lists) {
      for (const [id, stored] of Object.entries((value as SubscriptionList).subscriptions)) {
        if (stored.seq <= broadcast) targets.push({ user: userOfKey(key), id, stored })
      }
    }
  }
  return targets
})
