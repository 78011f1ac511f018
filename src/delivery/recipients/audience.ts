// The audience of a shard: the subscriptions of its registered users, as they were when the
// broadcast was accepted.
import { Effect } from "effect"
import { Settings } from "#config"
import type { MinimumRevisions, ShardJob } from "#domain/job.ts"
import type { Registration } from "#domain/registration.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeReadCache } from "#nats/kv/read-cache.ts"
import type { Entry } from "#nats/kv/values.ts"
import { type EntryKey, keys, userOfKey } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { Target } from "../push/target.ts"
import { makeRedriveFilter } from "./redrive-filter.ts"

/** Lists read in one request. A typical one has 1 KB. */
const listsAtOnce = 250
const digits = [..."0123456789abcdef"]

const isBelow = (a: MinimumRevisions, b: MinimumRevisions) =>
  a.subscriptions < b.subscriptions || a.registrations < b.registrations

interface Place {
  readonly user: UserToken
  readonly since: number
}

/**
 * Reads the entries that a wildcard matches: with one request, or sixteen where the server refuses
 * so many.
 */
const entriesOf = (
  buckets: Buckets["Service"],
  filter: EntryKey<"registration">,
  minRevision: number
): Effect.Effect<ReadonlyArray<Entry<Registration>>, NatsUnavailable> =>
  Effect.gen(function* () {
    const entries = yield* buckets.getMany("registrations", [filter], minRevision)
    if (entries !== undefined) return entries
    const below = yield* Effect.forEach(digits, (digit) =>
      entriesOf(buckets, keys.sixteenthOf(filter, digit), minRevision)
    )
    return below.flat()
  })

/** The users registered under these wildcards. */
const placesOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  filters: ReadonlyArray<EntryKey<"registration">>,
  minRevision: number
) {
  const places = new Map<string, ReadonlyArray<Place>>()
  for (const filter of filters) {
    const entries = yield* entriesOf(buckets, filter, minRevision)
    const on = entries.flatMap(({ key, value }) => {
      const { on, since } = value
      return on ? [{ user: userOfKey(key), since }] : []
    })
    places.set(filter, on)
  }
  return places
})

/** Reads the lists of these users; in halves where they do not fit into one response. */
const listsOf = (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number
): Effect.Effect<ReadonlyArray<Entry<SubscriptionList>>, NatsUnavailable> =>
  Effect.gen(function* () {
    const entries = yield* buckets.getMany("subscriptions", users, minRevision)
    if (entries !== undefined) return entries
    if (users.length === 1)
      return yield* unavailable("read subscriptions")(new Error("one list is too large"))
    const half = Math.ceil(users.length / 2)
    const parts = yield* Effect.forEach([users.slice(0, half), users.slice(half)], (part) =>
      listsOf(buckets, part, minRevision)
    )
    return parts.flat()
  })

/** Reads the subscriptions of these users, with only what a push needs of each. */
const targetsOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number
) {
  const targets = new Map<string, ReadonlyArray<Target>>()
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const part = users.slice(i, i + listsAtOnce)
    for (const { key, value } of yield* listsOf(buckets, part, minRevision)) {
      const user = userOfKey(key)
      const list = Object.entries(value.subscriptions).map(([id, stored]): Target => {
        const { endpoint, keys } = stored.data
        return { user, id, stored: { ...stored, data: { endpoint, keys } } }
      })
      targets.set(key, list)
    }
  }
  return targets
})

/**
 * Returns the targets of a shard, in a fixed order: those made before the broadcast was accepted.
 */
export const makeAudience = Effect.gen(function* () {
  const buckets = yield* Buckets
  const watermark = yield* Watermark
  const { rememberedSubscriptionsMax } = yield* Settings
  const registrations = yield* makeReadCache(
    "registrations",
    rememberedSubscriptionsMax,
    (filters: ReadonlyArray<EntryKey<"registration">>, floor) => placesOf(buckets, filters, floor)
  )
  const subscriptions = yield* makeReadCache(
    "subscriptions",
    rememberedSubscriptionsMax,
    (users: ReadonlyArray<EntryKey<"subscriptions">>, floor) => targetsOf(buckets, users, floor)
  )
  const redriven = yield* makeRedriveFilter
  const audience = Effect.fnUntraced(function* (job: ShardJob, floor: MinimumRevisions) {
    const { broadcast, channel, shard } = job
    const filter = keys.registrationsOf(channel as ChannelToken, shard)
    const places = (yield* registrations.lists([filter], floor.registrations)).get(filter) ?? []
    const users = places
      .filter(({ since }) => since <= broadcast)
      .map(({ user }) => keys.subscriptions(user))
    const lists = yield* subscriptions.lists(users, floor.subscriptions)
    const targets = users.flatMap((user) =>
      (lists.get(user) ?? []).filter(
        ({ stored }) => stored.seq <= broadcast && stored.suspended === undefined
      )
    )
    return yield* redriven(job, targets)
  })
  return (job: ShardJob) =>
    audience(job, job.floor).pipe(
      // No replica has the job's minimum revisions, and none may ever have them: the bucket was
      // restored or rebuilt. Then use the revisions that the projection reports for this broadcast.
      Effect.catchTag("NatsUnavailable", (error) =>
        watermark
          .reached(job.broadcast, appliedMillis)
          .pipe(
            Effect.flatMap(({ floor }) =>
              isBelow(floor, job.floor) ? audience(job, floor) : Effect.fail(error)
            )
          )
      )
    )
})
