// Removes the entries of channels that nobody is registered on, and of registrations that ended.
// Not by a TTL of JetStream, which runs from the write: an entry may go only when the checkpoint is
// behind its last change, and not if somebody joined meanwhile.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { type Moment, moment, monotonicMillis } from "#clock/clocks.ts"
import {
  type ChannelBegin,
  type ChannelRegistrations,
  isBegun,
  type Registration
} from "#domain/registration.ts"
import { Nats } from "#nats/connection/connection.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry, parsedValue, type Written, writtenAfter } from "#nats/kv/entries.ts"
import type { Meta } from "#nats/kv/values.ts"
import {
  channelOfBegin,
  channelOfKey,
  type EntryKey,
  isRegistration,
  keys,
  metaKey
} from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { forgetDrafts } from "./drafts.ts"
import { noteUnused, type Sets } from "./sets.ts"
import { forgetTombstones } from "./trim.ts"

/** Channels that are forgotten in a second: at most 250 ms in which no command is applied. */
const forgottenAtOnce = 512
/** Requests under way. */
const concurrency = 64

const isUnused = (
  channel: ChannelRegistrations | undefined,
  begin: ChannelBegin | undefined
): boolean => !isBegun(channel, begin) || channel.registrations === 0

/** The unused channels whose last change no later term applies again, after message `saved`. */
const takeSome = Effect.fnUntraced(function* ({ begins, channels, unused }: Sets, saved: number) {
  const most = Number.isFinite(saved) ? forgottenAtOnce : unused.size
  const some = [...unused].slice(0, most)
  yield* channels.load(some.map((channel) => keys.channelRegistrations(channel)))
  yield* begins.load(some.map((channel) => keys.channelBegin(channel)))
  return some.filter((channel) => {
    const count = channels.get(keys.channelRegistrations(channel))
    if (!isUnused(count, begins.get(keys.channelBegin(channel)))) unused.delete(channel)
    else return (count?.seq ?? 0) <= saved
    return false
  })
})

/**
 * Removes the pushes of a channel, which the tally wrote. The tally writes none of an unused one.
 * The pushes of a channel that began after `saved` stay: another projector began it anew.
 */
const removePushes = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  channel: ChannelToken,
  saved: number
) {
  const entry = yield* buckets.get("channels", keys.channelPushes(channel))
  if (entry !== undefined && entry.value.since <= saved)
    yield* buckets.remove("channels", entry.revision)
})

/**
 * Milliseconds after which a registration that ended is forgotten. Until then its entry tells
 * workers that it ended: a worker that is frozen for longer has lost its consumer, and reads the
 * bucket anew.
 */
export const EndedMillis: Context.Reference<number> = Context.Reference<number>(
  "bellcast/projection/EndedMillis",
  { defaultValue: () => 3_600_000 }
)

/** Entries of registrations that are read at once. */
const readAtOnce = 512
/** Within `EndedMillis`, at most: once a minute, so that what is read is mostly due. */
const readsInTime = 60
/** The checkpoint is stored each second. */
const savedMillis = 1_000
/** Time in which no command is applied, but for the last read: entries of an hour come together. */
const turnMillis = 100
/** A later term reads again what was read since the place was stored. */
const placeMillis = 60_000

/** Where the reading of the bucket `registrations` is, in the order in which it was written. */
interface Place {
  /** Among the entries up to this revision is none any more of a registration that ended. */
  upTo: number
  /** All entries up to this revision are read. */
  readUpTo: number
  /** A read found no more when so much was written. A replica that is behind may lack it. */
  foundEndAt: number
  /** The next entry is old enough then, by the monotonic clock. */
  dueAt: number
  /** The reading has passed more than `meta` since the place was stored. */
  hasMoved: boolean
  /** `meta` of the bucket as it is stored, its revision, and when it was stored. */
  meta: Meta
  revision: number
  storedAt: number
}

interface Reader {
  readonly buckets: Buckets["Service"]
  readonly nats: Nats["Service"]
  readonly endedMillis: number
  /** When this term began. */
  readonly began: Moment
  readonly place: Place
}

/**
 * Makes the function that forgets registrations that ended long ago, which no later term applies
 * again. It reads each entry once, an hour after it was written, whoever wrote it: so its cost
 * follows the changes of that hour, not the number of registrations, and it has none in memory.
 */
export const makeForgetEnded = Effect.fnUntraced(function* (sets: Sets) {
  const buckets = yield* Buckets
  const stored = yield* buckets.get("registrations", metaKey)
  const meta: Meta = stored?.value ?? { v: 1 }
  const reader: Reader = {
    buckets,
    nats: yield* Nats,
    endedMillis: yield* EndedMillis,
    began: yield* moment,
    place: {
      upTo: meta.forgottenUpTo ?? 0,
      readUpTo: 0,
      foundEndAt: 0,
      dueAt: 0,
      hasMoved: false,
      meta,
      revision: stored?.revision ?? 0,
      storedAt: Number.NEGATIVE_INFINITY
    }
  }
  return (saved: number) =>
    Effect.andThen(forgetEnded(reader, sets, saved), storePlace(reader, sets))
})

const forgetEnded = Effect.fnUntraced(function* (reader: Reader, sets: Sets, saved: number) {
  const { nats, place } = reader
  const now = yield* moment
  const written = sets.registrations.revision()
  if (written <= place.readUpTo || now.monotonic < place.dueAt) return
  let forgotten = 0
  while (forgotten < forgottenAtOnce) {
    const { areMore, entries } = yield* writtenAfter("registrations", place.upTo, readAtOnce).pipe(
      Effect.provideService(Nats, nats)
    )
    const waits = entries.map((entry) => waitOf(reader, now, saved, entry))
    const first = waits.findIndex((millis) => millis > 0)
    const passed = first === -1 ? entries : entries.slice(0, first)
    forgotten += yield* removeEnded(sets, passed)
    place.upTo = passed.at(-1)?.revision ?? place.upTo
    place.hasMoved ||= passed.some(({ key }) => key !== metaKey)
    if (first !== -1) place.dueAt = now.monotonic + waits[first]!
    else if (!areMore) findEnd(place, written)
    const isOver = (yield* monotonicMillis) - now.monotonic >= turnMillis
    if (first !== -1 || !areMore || isOver) return
  }
})

/** Notes that a read found no more. The second one in a row is the end of the bucket. */
const findEnd = (place: Place, written: number): void => {
  if (place.foundEndAt === written) place.readUpTo = written
  place.foundEndAt = written
}

/** The change that an entry is of; undefined: it is not that of a registration. */
const registrationOf = ({ key, text }: Written): Registration | undefined =>
  isRegistration(key) ? (parsedValue(text) as Registration | undefined) : undefined

/**
 * Milliseconds until an entry may be passed. The clock of NATS may be set forward: so an entry of
 * this term waits as long by the monotonic clock, too.
 */
const waitOf = (
  { began, endedMillis }: Reader,
  { at, monotonic }: Moment,
  saved: number,
  entry: Written
): number => {
  const registration = registrationOf(entry)
  if (registration === undefined) return 0
  const ageMillis = Math.min(at, began.at + monotonic - began.monotonic) - entry.at
  if (ageMillis < endedMillis)
    return Math.max(endedMillis - Math.max(0, ageMillis), endedMillis / readsInTime)
  // A later term applies the command again: then the entry says that its user has left.
  return registration.on || registration.seq <= saved ? 0 : savedMillis
}

/** Removes the entries of registrations that ended and did not change since. */
const removeEnded = Effect.fnUntraced(function* (
  { registrations }: Sets,
  entries: ReadonlyArray<Written>
) {
  const ended = new Map<EntryKey<"registration">, number>()
  for (const entry of entries) {
    const registration = registrationOf(entry)
    if (registration?.on === false)
      ended.set(entry.key as EntryKey<"registration">, registration.seq)
  }
  if (ended.size === 0) return 0
  yield* registrations.load(ended.keys())
  for (const [key, seq] of ended) {
    const now = registrations.get(key)
    if (now?.on === false && now.seq === seq) registrations.remove(key)
  }
  yield* registrations.flush
  return ended.size
})

/** Stores the place once a minute while it moves, and where all is read. */
const storePlace = ({ buckets, place }: Reader, { registrations }: Sets) =>
  Effect.gen(function* () {
    const now = yield* monotonicMillis
    const isAllRead = place.readUpTo >= registrations.revision()
    if (!place.hasMoved || !(isAllRead || now >= place.storedAt + placeMillis)) return
    const meta = { ...place.meta, forgottenUpTo: place.upTo }
    const revision = yield* buckets.put("registrations", metaKey, meta, place.revision)
    Object.assign(place, { hasMoved: false, meta, revision, storedAt: now })
  }).pipe(
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
    Effect.mapError(unavailable("store the place"))
  )

/**
 * Forgets channels that nobody is registered on: a second after the last user left, when the
 * checkpoint says so (`saved`). A crash half-way leaves the count, by which the next term finds the
 * channel again.
 */
export const forget = Effect.fnUntraced(function* (
  sets: Sets,
  buckets: Buckets["Service"],
  saved: number
) {
  yield* forgetDrafts(sets, saved)
  yield* forgetTombstones(sets, saved)
  const { begins, channels, unused } = sets
  if (unused.size === 0) return
  const gone = yield* takeSome(sets, saved)
  yield* Effect.forEach(gone, (channel) => removePushes(buckets, channel, saved), {
    concurrency,
    discard: true
  })
  yield* deleteCounts(sets, gone, saved)
  for (const channel of gone) begins.remove(keys.channelBegin(channel))
  yield* begins.flush
  for (const channel of gone) {
    channels.remove(keys.channelRegistrations(channel))
    unused.delete(channel)
  }
  yield* channels.flush
})

/**
 * Deletes the messages about the counts of channels that nobody is registered on. Those of a
 * channel that began after `saved` stay: another projector began it anew.
 */
const deleteCounts = Effect.fnUntraced(function* (
  { deletions, isLive, log }: Sets,
  gone: ReadonlyArray<ChannelToken>,
  saved: number
) {
  if (!isLive || gone.length === 0) return
  const about = gone.flatMap((channel) => [subjects.begun(channel), subjects.summed(channel)])
  for (const { message, seq } of yield* log.lastOf("log", about)) {
    const isAbout = message.type === "channel.begun" || message.type === "channel.summed"
    if (isAbout && message.since <= saved) Queue.offerUnsafe(deletions, seq)
  }
})

/**
 * Notes the channels that an earlier term did not forget, and those that a killed nats-server
 * brought back. Reads the whole bucket, when a term begins and when another run of nats-server
 * leads it: a second for 100,000 channels. Entries that came back have old revisions, which no
 * index by time shows, and a count that an earlier term left may be of any age.
 */
export const findUnused = Effect.fnUntraced(function* (sets: Sets) {
  sets.areMoreUnused = false
  const begins = new Map<ChannelToken, ChannelBegin>()
  yield* eachEntry(
    "channels",
    (key, value) => void begins.set(channelOfBegin(key), value as ChannelBegin),
    keys.channelBegins
  )
  // A channel that begins meanwhile is noted, too: `takeSome` reads what it has.
  yield* eachEntry("channels", (key, value) => {
    const place = channelOfKey(key)
    if (place === undefined) return
    const begin = begins.get(place.channel)
    const isOver =
      place.of === "pushes" ? begin === undefined : isUnused(value as ChannelRegistrations, begin)
    if (isOver) noteUnused(sets, place.channel)
  })
})
