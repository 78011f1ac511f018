// Removes the entries of channels that nobody is registered on.
import { Effect } from "effect"
import { type ChannelBegin, type ChannelRegistrations, isBegun } from "#domain/registration.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { eachEntry } from "#nats/kv/entries.ts"
import { channelOfKey, keys } from "#streams/buckets.ts"
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

/** The unused channels whose last change no later run applies again, after message `saved`. */
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

/** Removes the pushes of a channel, which the tally wrote. It writes none of an unused channel. */
const removePushes = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  channel: ChannelToken
) {
  const entry = yield* buckets.get("channels", keys.channelPushes(channel))
  if (entry !== undefined) yield* buckets.remove("channels", entry.revision)
})

/**
 * Forgets channels that nobody is registered on: a second after the last user left, when the
 * checkpoint says so (`saved`). A crash half-way leaves the count, by which the next run finds the
 * channel again.
 */
export const forget = Effect.fnUntraced(function* (
  sets: Sets,
  buckets: Buckets["Service"],
  saved: number
) {
  const { begins, channels, unused } = sets
  if (unused.size === 0) return
  const gone = yield* takeSome(sets, saved)
  yield* Effect.forEach(gone, (channel) => removePushes(buckets, channel), {
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
 * Adds the channels that an earlier run did not forget, and those that a killed nats-server brought
 * back. Reads the whole bucket: a second for 100,000 channels.
 */
export const findUnused = Effect.fnUntraced(function* ({ unused }: Sets) {
  const begins = new Map<string, ChannelBegin>()
  const counts = new Map<ChannelToken, ChannelRegistrations | undefined>()
  yield* eachEntry("channels", (key, value) => {
    const place = channelOfKey(key)
    if (place === undefined) begins.set(key, value as ChannelBegin)
    else if ("registrations" in value) counts.set(place.channel, value)
    else counts.set(place.channel, counts.get(place.channel))
  })
  for (const [channel, count] of counts)
    if (isUnused(count, begins.get(beginKey(channel)))) unused.add(channel)
})
