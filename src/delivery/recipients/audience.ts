// The audience of a shard: the subscriptions of its registered users, as they were when the
// broadcast was accepted.
import * as Effect from "effect/Effect"
import type { MinimumRevisions, ShardJob } from "#domain/job.ts"
import { withoutMoved } from "#domain/subscription/owners.ts"
import type { SubscriptionList } from "#domain/subscription/subscription.ts"
import { Caches } from "#memory/cache-memory.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { registrationsUnder } from "#nats/kv/entries.ts"
import { makeReadCache } from "#nats/kv/read-cache.ts"
import type { Entry } from "#nats/kv/values.ts"
import { type EntryKey, keys, userOfKey } from "#streams/buckets.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import type { Target } from "../push/target.ts"
import { makeRedriveFilter } from "./redrive-filter.ts"

/** Lists read in one request. A typical one has 1 KB. */
const listsAtOnce = 250

const isBelow = (a: MinimumRevisions, b: MinimumRevisions) =>
  a.subscriptions < b.subscriptions || a.registrations < b.registrations

/** A registered user, and since which sequence of LOG. */
type Place = readonly [user: UserToken, since: number]

/** The users registered under these wildcards, as text. */
const placesOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  filters: ReadonlyArray<EntryKey<"registration">>,
  minRevision: number
) {
  const texts = new Map<string, string>()
  for (const filter of filters) {
    const entries = yield* registrationsUnder(buckets, filter, minRevision)
    const places = entries.flatMap(
      ({ key, value: { on, since } }): ReadonlyArray<Place> => (on ? [[userOfKey(key), since]] : [])
    )
    texts.set(filter, JSON.stringify(places))
  }
  return texts
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

/** Reads the subscriptions of these users, with only what a push needs of each, as text. */
const textsOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number
) {
  const texts = new Map<string, string>()
  for (let i = 0; i < users.length; i += listsAtOnce) {
    const part = users.slice(i, i + listsAtOnce)
    // A user without subscriptions has an empty list, so that it is not read each time.
    for (const key of part) texts.set(key, "[]")
    for (const { key, value } of yield* listsOf(buckets, part, minRevision)) {
      const own = Object.entries(withoutMoved(value).subscriptions)
      const list = own.map(([id, stored]): Omit<Target, "user"> => {
        const { endpoint, keys } = stored.data
        return { id, stored: { ...stored, data: { endpoint, keys } } }
      })
      texts.set(key, JSON.stringify(list))
    }
  }
  return texts
})

const targetsOf = (user: UserToken, text: string): ReadonlyArray<Target> =>
  (JSON.parse(text) as ReadonlyArray<Omit<Target, "user">>).map((each) => ({ user, ...each }))

/**
 * Returns the targets of a shard, in a fixed order: those made before the broadcast was accepted.
 */
export const makeAudience = Effect.gen(function* () {
  const buckets = yield* Buckets
  const watermark = yield* Watermark
  const caches = yield* Caches
  const registrations = yield* makeReadCache(
    "registrations",
    caches.share("registrations"),
    (filters: ReadonlyArray<EntryKey<"registration">>, floor) => placesOf(buckets, filters, floor)
  )
  const subscriptions = yield* makeReadCache(
    "subscriptions",
    caches.share("subscriptions"),
    (users: ReadonlyArray<EntryKey<"subscriptions">>, floor) => textsOf(buckets, users, floor)
  )
  const redriven = yield* makeRedriveFilter
  const audience = Effect.fnUntraced(function* (job: ShardJob, floor: MinimumRevisions) {
    const { broadcast, channel, shard } = job
    const filter = keys.registrationsOf(channel as ChannelToken, shard)
    const text = (yield* registrations.texts([filter], floor.registrations)).get(filter)!
    const users = (JSON.parse(text) as ReadonlyArray<Place>).flatMap(([user, since]) =>
      since <= broadcast ? [user] : []
    )
    const lists = yield* subscriptions.texts(users.map(keys.subscriptions), floor.subscriptions)
    const targets = users.flatMap((user) =>
      targetsOf(user, lists.get(keys.subscriptions(user))!).filter(
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
