// Recipients of pushes. The audience of a shard: the subscriptions of its users, as they were when
// the broadcast was accepted, or started later; a user is registered on a channel of it, or named.
// Of a redrive, those whose push of the earlier broadcast ended as dead or expired. The target of a
// retry: the subscription as its user has it now.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import { type MinimumRevisions, type RetryJob, type ShardJob, sinceOf } from "#domain/job.ts"
import { isUndelivered, pushKey } from "#domain/outcome.ts"
import { type Recipients, usersIn } from "#domain/recipients.ts"
import { isMoved, takenFrom } from "#domain/subscription/owners.ts"
import { type StoredSubscription, storedIn, takes } from "#domain/subscription/subscription.ts"
import { Caches } from "#memory/cache-memory.ts"
import { appliedMillis, Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { readOr } from "#nats/kv/entries.ts"
import { makeReadCache, type ReadCache } from "#nats/kv/read-cache.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys, userOfKey } from "#streams/buckets.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { type ChannelToken, isInShard, type UserToken } from "#streams/tokens.ts"
import { eachList, registrationsUnder } from "#subscriptions/audience.ts"
import { removedData, type Target } from "../attempt.ts"

export interface Audience {
  /** With those that another user took since (`stored.moved`). */
  readonly targets: ReadonlyArray<Target>
  /** Fails where the subscription of a target moved, or was removed or replaced, since the read. */
  readonly check: (target: Target) => Effect.Effect<void, Gone, Buckets>
  /** How many users whom the broadcast names have none here. Absent: it names no users. */
  readonly withoutSubscription?: number
}

/** Why a subscription gets nothing any more: another user stored it, or its user ended it. */
export type Gone = "moved" | "left"

/** Caches of reads: registrations and subscriptions, and the pushes of redrives. */
interface Reads {
  readonly registrations: ReadCache<EntryKey<"registration">, ReadonlyArray<Place>>
  readonly subscriptions: ReadCache<EntryKey<"subscriptions">, ReadonlyArray<Subscribed>>
  readonly redriven: Effect.Success<typeof makeRedriveFilter>
}

const makeAudiences = Effect.gen(function* () {
  const buckets = yield* Buckets
  const watermark = yield* Watermark
  const caches = yield* Caches
  const redriven = yield* makeRedriveFilter
  const registrations = yield* makeReadCache(
    "registrations",
    caches.share("registrations"),
    (filters: ReadonlyArray<EntryKey<"registration">>, floor) => placesOf(buckets, filters, floor)
  )
  const subscriptions = yield* makeReadCache(
    "subscriptions",
    caches.share("subscriptions"),
    (users: ReadonlyArray<EntryKey<"subscriptions">>, floor) => listsOf(buckets, users, floor)
  )
  const reads: Reads = { registrations, subscriptions, redriven }
  /** Returns the targets of a shard, in a fixed order: those made before the broadcast started. */
  const of = (job: ShardJob, to: Recipients) =>
    readAudience(reads, job, to, job.floor).pipe(
      // No replica has the job's minimum revisions, and none may ever have them: the bucket was
      // restored or rebuilt. Then use the revisions that the projection reports for this broadcast.
      Effect.catchTag("NatsUnavailable", (error) =>
        watermark
          .reached(sinceOf(job), appliedMillis)
          .pipe(
            Effect.flatMap(({ floor }) =>
              isBelow(floor, job.floor) ? readAudience(reads, job, to, floor) : Effect.fail(error)
            )
          )
      )
    )
  return { of }
})

export class Audiences extends Context.Service<Audiences, Effect.Success<typeof makeAudiences>>()(
  "bellcast/delivery/Audiences"
) {
  static readonly layer = Layer.effect(Audiences, makeAudiences)
}

const readAudience = Effect.fnUntraced(function* (
  { redriven, registrations, subscriptions }: Reads,
  job: ShardJob,
  to: Recipients,
  floor: MinimumRevisions
) {
  const isChanged = subscriptions.changesFromNow()
  const users = yield* usersOf(registrations, job, to, floor.registrations)
  const lists = yield* subscriptions.values(users.map(keys.subscriptions), floor.subscriptions)
  const targets = users.flatMap((user) =>
    lists
      .get(keys.subscriptions(user))!
      .filter((each) => isFor(each, job, to))
      .map((each): Target => ({ user, ...each }))
  )
  const found: Audience = {
    targets: yield* redriven(job, targets),
    check: (target) => (isChanged(keys.subscriptions(target.user)) ? checkNow(target) : Effect.void)
  }
  if (to.users.length === 0) return found
  const reached = new Set(targets.map(({ user }) => user))
  const named = to.users.filter((user) => isInShard(user, job.shard))
  return { ...found, withoutSubscription: named.filter((user) => !reached.has(user)).length }
})

const isBelow = (a: MinimumRevisions, b: MinimumRevisions) =>
  a.subscriptions < b.subscriptions || a.registrations < b.registrations

/** A registered user, and since which sequence of LOG. */
type Place = readonly [user: UserToken, since: number]

/** No channel token has a dot. */
const channelIn = (key: string) => key.slice(0, key.indexOf("."))

/** The users registered under these wildcards, each of another channel. */
const placesOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  filters: ReadonlyArray<EntryKey<"registration">>,
  minRevision: number
) {
  const places = new Map(filters.map((filter): [string, Array<Place>] => [channelIn(filter), []]))
  for (const { key, value } of yield* registrationsUnder(buckets, filters, minRevision))
    if (value.on) places.get(channelIn(key))?.push([userOfKey(key), value.since])
  return new Map(
    filters.map((filter): [string, ReadonlyArray<Place>] => [
      filter,
      places.get(channelIn(filter))!
    ])
  )
})

type Subscribed = Omit<Target, "user">

/** A subscription with only what a push needs of it. */
const subscribed = ([id, each]: readonly [string, StoredSubscription]): Subscribed => {
  const { renewal: _, renewed: __, ...rest } = each
  const { endpoint, keys, locale } = each.data
  const data = { endpoint, keys, ...(locale === undefined ? {} : { locale }) }
  return { id, stored: { ...rest, data } }
}

/** A subscription that another user took, possibly after the broadcast started. */
const takenAway = ({ generation, id, moved, service }: ReturnType<typeof takenFrom>[number]) => ({
  id,
  stored: { seq: generation, lastModified: 0, moved, data: removedData },
  ...(service === undefined ? {} : { service })
})

/** Reads the subscriptions of these users. */
const listsOf = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  users: ReadonlyArray<EntryKey<"subscriptions">>,
  minRevision: number
) {
  // A user without subscriptions has an empty list, so that it is not read each time.
  const lists = new Map(users.map((key): [string, ReadonlyArray<Subscribed>] => [key, []]))
  yield* eachList(buckets, users, minRevision, ({ key, value }) => {
    const present = Object.entries(value.subscriptions).map(subscribed)
    lists.set(key, [...present, ...takenFrom(value).map(takenAway)])
  })
  return lists
})

/** Fails if the subscription was removed, replaced or moved since it was read. */
const checkNow = Effect.fnUntraced(function* ({ id, stored, user }: Target) {
  const now = yield* Effect.option(storedNow(user, id, stored.seq))
  // NATS is away: the outcomes of the shard are not stored either.
  if (now._tag === "None") return
  if (typeof now.value === "string") return yield* Effect.fail(now.value)
})

/** The users of a shard: registered when the broadcast started, or named. */
const usersOf = Effect.fnUntraced(function* (
  registrations: ReadCache<EntryKey<"registration">, ReadonlyArray<Place>>,
  job: ShardJob,
  to: Recipients,
  minRevision: number
) {
  const filters = to.channels.map((channel) => keys.registrationsOf(channel, job.shard))
  const found = yield* registrations.values(filters, minRevision)
  const places = filters.flatMap((key) => found.get(key)!)
  const registered = places.flatMap(([user, since]) => (since <= sinceOf(job) ? [user] : []))
  return usersIn(to, job.shard, registered)
})

/** Whether a subscription gets a push of the job. */
const isFor = ({ id, stored }: Subscribed, job: ShardJob, to: Recipients): boolean =>
  takes(stored, sinceOf(job)) && (to.subscription === undefined || id === to.subscription)

/**
 * Returns the present subscription, or why the push ends: the subscription was removed or replaced,
 * another user stored it, or its user left all channels of the broadcast and is not named in it.
 */
export const presentTarget = Effect.fnUntraced(function* (
  job: RetryJob,
  { channels, users }: Recipients
) {
  const user = job.user as UserToken
  const stored = yield* storedNow(user, job.subscription, job.generation)
  if (typeof stored === "string") return stored
  const target: Target = { user, id: job.subscription, stored }
  if (users.includes(user)) return target
  const places = channels.map((channel) => keys.registration(channel, user))
  return (yield* isRegistered(places)) ? target : ("left" as const)
})

/** Whether one of these registrations stands now. Many are read by two requests. */
const isRegistered = Effect.fnUntraced(function* (
  places: ReadonlyArray<ReturnType<typeof keys.registration>>
) {
  const buckets = yield* Buckets
  const inTurn = Effect.gen(function* () {
    let isUnread = false
    for (const place of places) {
      const found = yield* readOr(buckets.get("registrations", place), "unread" as const)
      if (found === "unread") isUnread = true
      else if (found?.value.on === true) return true
    }
    return isUnread ? yield* Effect.die(new Error("a registration is no JSON")) : false
  })
  if (places.length < 2) return yield* inTurn
  return yield* Effect.gen(function* () {
    const present = yield* buckets.revision("registrations")
    const found = yield* buckets.getMany("registrations", places, present)
    return found!.some(({ value }) => value.on)
  }).pipe(
    // Where one of them is no JSON, another one may stand.
    Effect.catch(() => inTurn)
  )
})

/** Returns the subscription `id` of a user if it is the one that was stored by `generation`. */
const storedNow = Effect.fnUntraced(function* (user: UserToken, id: string, generation: number) {
  const buckets = yield* Buckets
  const list = yield* buckets.get("subscriptions", keys.subscriptions(user))
  if (list !== undefined && isMoved(list.value, id)) return "moved" as const
  const stored = list && storedIn(list.value, id)
  return stored?.seq === generation ? stored : ("left" as const)
})

/** Bytes of V8's heap (measured): the key of a push and its place in a set. */
const pushBytes = 210

/** Redrives whose pushes are kept. Their shards take turns. */
const knownMax = 4

/** The pushes of a redrive. `usedIn`: sweeps of the share when they were used last. */
interface Known {
  readonly pushes: ReadonlySet<string>
  readonly usedIn: number
}

/**
 * Returns the targets that a job is for: all, unless it redrives. Ignores outcomes later than the
 * end of the former broadcast; of one that goes on, those later than the redrive.
 */
export const makeRedriveFilter = Effect.gen(function* () {
  const log = yield* EventLog
  // Without this cache each shard of a redrive would read all outcomes.
  const alone = yield* Semaphore.make(1)
  const share = (yield* Caches).share("redrives")
  /** By broadcast, in the order of their last use. */
  const known = new Map<number, Known>()
  const drop = (broadcast: number) => {
    share.bytes -= (known.get(broadcast)?.pushes.size ?? 0) * pushBytes
    known.delete(broadcast)
  }
  const keep = (broadcast: number, pushes: ReadonlySet<string>) => {
    drop(broadcast)
    for (const oldest of known.keys()) if (known.size >= knownMax) drop(oldest)
    known.set(broadcast, { pushes, usedIn: share.sweeps })
    share.bytes += pushes.size * pushBytes
    return pushes
  }
  share.join((since) => {
    for (const [broadcast, { usedIn }] of known) if (usedIn < since) drop(broadcast)
  })

  const read = Effect.fnUntraced(function* (
    { acceptedAt, broadcast, channel }: ShardJob,
    redrives: number
  ) {
    const found = known.get(broadcast)
    if (found !== undefined) return keep(broadcast, found.pushes)
    const pushes = new Set<string>()
    const place = channel as ChannelToken
    const end = (yield* log.last("log", subjects.finished(place, redrives)))?.message
    // Not by times where it had finished: the clocks of two servers may differ.
    const isLater = ({ at, seq }: Stored) =>
      end?.type === "broadcast.finished" ? seq > end.seq : at > acceptedAt
    yield* log.replay("work", [filters.outcomesIn(place, redrives)], (stored) =>
      Effect.sync(() => {
        const { message } = stored
        if (message.type !== "outcome" || isLater(stored)) return
        for (const { fate, subscription, user } of message.results)
          if (isUndelivered(fate)) pushes.add(pushKey(user, subscription))
      })
    )
    return keep(broadcast, pushes)
  }, alone.withPermits(1))

  return Effect.fnUntraced(function* (job: ShardJob, targets: ReadonlyArray<Target>) {
    if (job.redrives === undefined) return targets
    const pushes = yield* read(job, job.redrives)
    return targets.filter(({ id, user }) => pushes.has(pushKey(user, id)))
  })
})
