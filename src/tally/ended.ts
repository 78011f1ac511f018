// Finds entries of broadcasts that have finished, whose final counts are in LOG. The tally removed
// them, and they are back: a nats-server 2.15 that is killed brings a replaced value back whose key
// was removed since, and a tally that was frozen writes what it counted before another one took the
// lease. No view shows such an entry.
import * as Effect from "effect/Effect"
import { originOf } from "#broadcasts/state.ts"
import { monotonicMillis } from "#clock/clocks.ts"
import { Nats } from "#nats/connection/connection.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { scanEntries } from "#nats/kv/entries.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, directToken } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"

/**
 * Between two looks, if the connection lasts. A look reads the bucket, which has the broadcasts
 * under way only: with none, one request.
 */
const lookMillis = 60_000

/** Broadcasts of which LOG is read at once. */
const originsAtOnce = 32

/** Looks if one is due. `saved`: no later term counts this message of WORK, or an earlier one. */
export type FindEnded = (
  saved: number
) => Effect.Effect<ReadonlyArray<EntryKey<"broadcast">>, NatsUnavailable>

/** Looks at first, each minute, and when NATS was away: its server may have been killed. */
export const makeFindEnded = Effect.gen(function* () {
  const { reconnections } = yield* Nats
  const context = yield* Effect.context<Nats | EventLog | Buckets>()
  const warn = makeRateLimitedLog("broadcasts that have finished were not looked for")
  /** By broadcast, of those that had an entry at the last look. */
  let channels: ReadonlyMap<number, ChannelToken> = new Map()
  let last: { readonly at: number; readonly reconnections: number } | undefined

  const look = Effect.fnUntraced(function* (saved: number) {
    channels = yield* channelsOf(yield* broadcastsInBucket, channels)
    return yield* endedOf(channels, saved)
  })

  const find: FindEnded = Effect.fnUntraced(
    function* (saved) {
      const now = { at: yield* monotonicMillis, reconnections: reconnections() }
      const isDue =
        last === undefined ||
        now.at - last.at >= lookMillis ||
        now.reconnections !== last.reconnections
      if (!isDue) return []
      const found = yield* look(saved)
      last = now
      return found
    },
    Effect.catch((err) => Effect.as(warn({ err }), [])),
    Effect.provideContext(context)
  )
  return find
})

const broadcastsInBucket = Effect.gen(function* () {
  const found = new Set<number>()
  yield* scanEntries("broadcasts", (key) => void found.add(Number(key)))
  return [...found].filter((broadcast) => Number.isSafeInteger(broadcast))
})

/**
 * The channels of broadcasts. `known`: of earlier looks. Where LOG has final counts and not their
 * broadcast, it was to an erased user alone.
 */
const channelsOf = Effect.fnUntraced(function* (
  broadcasts: ReadonlyArray<number>,
  known: ReadonlyMap<number, ChannelToken>
) {
  const channels = new Map<number, ChannelToken>()
  const find = Effect.fnUntraced(function* (broadcast: number) {
    const channel = known.get(broadcast) ?? (yield* originOf(broadcast))?.channel
    channels.set(broadcast, channel ?? directToken)
  })
  yield* Effect.forEach(broadcasts, find, { concurrency: originsAtOnce, discard: true })
  return channels
})

/**
 * The broadcasts whose final counts are in LOG. One that finished after the message `saved` is left
 * out: this term counts it again, and removes its entry by itself.
 */
const endedOf = Effect.fnUntraced(function* (
  channels: ReadonlyMap<number, ChannelToken>,
  saved: number
) {
  const facts = [...channels].map(([broadcast, channel]) => subjects.finished(channel, broadcast))
  return (yield* (yield* EventLog).lastOf("log", facts)).flatMap(({ message }) =>
    message.type === "broadcast.finished" && message.seq <= saved
      ? keys.broadcast(message.broadcast)
      : []
  )
})
