// Removes the entries of channels that nobody is registered on, and of registrations that ended.
// Not by a TTL of JetStream, which runs from the write: an entry may go only when the checkpoint is
// behind its last change, and not if somebody joined meanwhile.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { type ChannelBegin, type ChannelRegistrations, isBegun } from "#domain/registration.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import { channelOfKey, type EntryKey, keys } from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import type { Sets } from "./sets.ts"
import { beginKey } from "./step.ts"

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
  yield* begins.load(some.map((channel) => beginKey(channel)))
  return some.filter((channel) => {
    const count = channels.get(keys.channelRegistrations(channel))
    if (!isUnused(count, begins.get(beginKey(channel)))) unused.delete(channel)
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

/** Forgets registrations that ended long ago, which no later term applies again. */
const forgetEnded = Effect.fnUntraced(function* ({ ended, registrations }: Sets, saved: number) {
  const before = performance.now() - (yield* EndedMillis)
  const due: Array<EntryKey<"registration">> = []
  for (const [key, at] of ended) {
    if (due.length === forgottenAtOnce) break
    if (at <= before) due.push(key)
  }
  if (due.length === 0) return
  yield* registrations.load(due)
  for (const key of due) {
    const registration = registrations.get(key)
    if (registration?.on === false && registration.seq > saved) continue
    ended.delete(key)
    if (registration?.on === false) registrations.remove(key)
  }
  yield* registrations.flush
})

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
  yield* forgetEnded(sets, saved)
  const { begins, channels, unused } = sets
  if (unused.size === 0) return
  const gone = yield* takeSome(sets, saved)
  yield* Effect.forEach(gone, (channel) => removePushes(buckets, channel, saved), {
    concurrency,
    discard: true
  })
  for (const channel of gone) begins.remove(beginKey(channel))
  yield* begins.flush
  for (const channel of gone) {
    channels.remove(keys.channelRegistrations(channel))
    unused.delete(channel)
  }
  yield* channels.flush
})

/**
 * Adds the registrations that ended and that an earlier term did not forget. False: there are more
 * to forget at once. Reads the bucket.
 */
export const findEnded = Effect.fnUntraced(function* ({ ended, forgetMax }: Sets) {
  const endedMillis = yield* EndedMillis
  const now = yield* Clock.currentTimeMillis
  let foundAll = true
  yield* eachEntry("registrations", (key, value, storedAt) => {
    const found = key as EntryKey<"registration">
    if (!("on" in value) || value.on || ended.has(found)) return
    const ageMillis = Math.max(0, now - storedAt)
    // Half of the room is for entries that may be forgotten at once, or they might not be found.
    const max = ageMillis < endedMillis ? forgetMax : 2 * forgetMax
    if (ended.size < max) ended.set(found, performance.now() - ageMillis)
    else if (ageMillis >= endedMillis) foundAll = false
  })
  return foundAll
})

/**
 * Adds the channels that an earlier term did not forget, and those that a killed nats-server
 * brought back. False: there are more. Reads the whole bucket: a second for 100,000 channels.
 */
export const findUnused = Effect.fnUntraced(function* ({ forgetMax, unused }: Sets) {
  const begins = new Map<string, ChannelBegin>()
  const counts = new Map<ChannelToken, ChannelRegistrations | undefined>()
  yield* eachEntry("channels", (key, value) => {
    const place = channelOfKey(key)
    if (place === undefined) begins.set(key, value as ChannelBegin)
    else if ("registrations" in value) counts.set(place.channel, value)
    else counts.set(place.channel, counts.get(place.channel))
  })
  for (const [channel, count] of counts) {
    if (!isUnused(count, begins.get(beginKey(channel)))) continue
    if (unused.size >= forgetMax) return false
    unused.add(channel)
  }
  return true
})
