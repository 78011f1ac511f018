// WORK -> broadcasts, channels. The tally counts the outcomes of pushes, records in LOG when a
// broadcast is finished, and pauses broadcasts of which too many pushes failed.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { originOf, pauseFailed } from "#broadcasts/state.ts"
import { publisherOf } from "#domain/broadcast.ts"
import {
  type ChannelPushes,
  type Delivered,
  deliveredOf,
  evolvePushes,
  pushesSince
} from "#domain/outcome.ts"
import {
  countsOf,
  evolveProgress,
  type Failures,
  type Progress,
  startProgress
} from "#domain/progress.ts"
import { Caches } from "#memory/cache-memory.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Facts, makeFacts } from "#nats/follower/facts.ts"
import { Followers } from "#nats/follower/follower.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeWriteBackCache, type WriteBackCache } from "#nats/kv/write-back-cache.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { parseOfBroadcast, subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken, isDirect } from "#streams/tokens.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type FindEnded, makeFindEnded } from "./ended.ts"

/** All broadcasts that a batch can finish: their facts are stored together. */
const finishedAtOnce = 256

/** Changed entries are stored every second, or at once when there are more than this. */
const changesMax = 4_096

/** Channels that are read at once. */
const countedAtOnce = 64

interface Finished {
  readonly channel: ChannelToken
  readonly progress: Progress
  /** Sequence of the message that finished the broadcast. */
  readonly seq: number
}

interface Tally {
  readonly buckets: Buckets["Service"]
  readonly broadcasts: WriteBackCache<EntryKey<"broadcast">, Progress>
  readonly channels: WriteBackCache<EntryKey<"channelPushes">, ChannelPushes>
  /** The pushes that outcomes add to channels, until the next flush. */
  readonly delivered: Map<ChannelToken, Array<Delivered>>
  readonly facts: Facts
  readonly log: EventLog["Service"]
  readonly pauses: Effect.Success<typeof makePauses>
  /** Broadcasts whose fact is stored, and whose progress is not removed yet. */
  readonly recorded: Set<EntryKey<"broadcast">>
  readonly findEnded: FindEnded
  /** No earlier term counted a message after this sequence. */
  readonly countedUpTo: number
}

/** Runs the tally until the scope of the layer closes. */
export const tallyLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("tally", startLive))
  })
)

/** The tally of a service, which also removes what earlier ones left, or NATS brought back. */
const startLive = (from: number) =>
  Effect.flatMap(makeFindEnded, (findEnded) => make(from, findEnded))

/** The tally of a rebuild, which has the buckets to itself. */
export const start = (from: number) => make(from, () => Effect.succeed([]))

const make = Effect.fnUntraced(function* (from: number, findEnded: FindEnded) {
  const share = (yield* Caches).share("tally")
  const broadcasts = yield* makeWriteBackCache<EntryKey<"broadcast">>("broadcasts", share)
  const channels = yield* makeWriteBackCache<EntryKey<"channelPushes">>("channels", share)
  const facts = yield* makeFacts
  const countedUpTo = (yield* streamState(streams.work))?.lastSeq ?? 0
  const tally: Tally = {
    buckets: yield* Buckets,
    broadcasts,
    channels,
    delivered: new Map(),
    facts,
    log: yield* EventLog,
    pauses: yield* makePauses,
    recorded: new Set(),
    findEnded,
    countedUpTo
  }
  return {
    from,
    apply: (batch: ReadonlyArray<Stored>) => apply(tally, batch),
    store: (saved: number) => store(tally, saved),
    unstoredSince: () =>
      Math.min(
        broadcasts.unstoredSince(),
        channels.unstoredSince(),
        facts.waitingSince(),
        tally.pauses.waitingSince()
      ),
    revisions: () => ({ channels: channels.revision() })
  }
})

const apply = Effect.fnUntraced(function* (
  tally: Tally,
  batch: ReadonlyArray<Stored>
): Effect.fn.Return<void, NatsUnavailable> {
  yield* load(tally, batch)
  const finished = batch.flatMap((stored) => count(tally, stored) ?? [])
  // Record facts first. After a crash in between, the broadcast is still unfinished and the next
  // term records the same fact again, which changes nothing.
  yield* Effect.forEach(finished, (each) => record(tally, each), {
    concurrency: finishedAtOnce,
    discard: true
  })
  yield* tally.pauses.store
  if (tally.broadcasts.changes() + tally.channels.changes() + tally.delivered.size > changesMax)
    yield* flush(tally)
})

const load = ({ broadcasts, countedUpTo }: Tally, batch: ReadonlyArray<Stored>) => {
  for (const { message, seq } of batch)
    if (message.type === "plan" && seq > countedUpTo)
      broadcasts.loadAbsent(keys.broadcast(message.broadcast))
  const places = batch.flatMap(({ subject }) => parseOfBroadcast(subject) ?? [])
  return broadcasts.load(places.map(({ broadcast }) => keys.broadcast(broadcast)))
}

/**
 * Counts one message. Returns the fact to record if the message finished its broadcast: also for a
 * message that an earlier term counted, as that term may not have stored the fact.
 */
const count = (
  { broadcasts, delivered, pauses }: Tally,
  { message, seq, subject }: Stored
): Finished | undefined => {
  const place = parseOfBroadcast(subject)
  if (place === undefined) return undefined
  const key = keys.broadcast(place.broadcast)
  const before = broadcasts.get(key)
  if (message.type === "plan") {
    const plan = { ...message, broadcast: place.broadcast }
    broadcasts.set(key, before ?? startProgress(plan, seq), seq)
  }
  if (message.type === "outcome" && before !== undefined)
    broadcasts.set(key, evolveProgress(before, message, place.of, seq), seq)
  const progress = broadcasts.get(key)
  // The pushes of a broadcast to several channels count for none of them.
  if (message.type === "outcome" && !isDirect(place.channel)) {
    const list = delivered.get(place.channel) ?? []
    delivered.set(place.channel, list)
    // Without its plan, a broadcast has expired in the bucket. Its channel still counts.
    const counted = progress ?? { broadcast: place.broadcast, lastModified: 0 }
    list.push(deliveredOf(message, counted, seq))
  }
  // Also for a message that an earlier term counted.
  if (progress?.failures?.reached === seq && !progress.finished)
    pauses.add(place.broadcast, progress.failures, seq)
  return progress?.finished === true && (before?.finished !== true || progress.seq === seq)
    ? { channel: place.channel, progress, seq }
    : undefined
}

/**
 * Replaces the progress by the fact: removes the progress after the fact is stored. While LOG has
 * no room, the finished progress is in the bucket.
 */
const record = Effect.fnUntraced(function* (
  { broadcasts, facts, log, recorded }: Tally,
  { channel, progress, seq }: Finished
) {
  const { broadcast } = progress
  const key = keys.broadcast(broadcast)
  const subject = subjects.finished(channel, broadcast)
  const message = { subject, type: "broadcast.finished", body: progress } as const
  const stored = () => void recorded.add(key)
  if (yield* facts.record({ message, seq, stored })) broadcasts.remove(key)
  const { retrying: _, waiting: __, ...counts } = countsOf(progress)
  const origin = yield* Effect.provideService(originOf(broadcast), EventLog, log)
  const publisher = origin && publisherOf(origin.source, origin.stored.header)
  const fields = { broadcast, publisher, channel: decodeToken(channel), ...counts }
  yield* Effect.logInfo("broadcast finished", fields)
})

const store = (tally: Tally, saved: number) =>
  Effect.gen(function* () {
    for (const key of yield* tally.findEnded(saved)) tally.recorded.add(key)
    yield* retryFacts(tally)
    yield* tally.pauses.store
    yield* flush(tally)
    yield* tally.broadcasts.retry
    yield* tally.channels.retry
  })

/** Stores the facts that wait, as far as there is room, and removes the progress of those. */
const retryFacts = Effect.fnUntraced(function* ({ broadcasts, facts, recorded }: Tally) {
  yield* facts.retry
  yield* broadcasts.load(recorded)
  for (const key of recorded) broadcasts.remove(key)
  recorded.clear()
})

/** Pushes of channels are counted with the flush: a channel is read once a second. */
const flush = Effect.fnUntraced(function* (tally: Tally) {
  const { broadcasts, channels, delivered } = tally
  const all = [...delivered]
  delivered.clear()
  yield* Effect.forEach(all, ([channel, list]) => countPushes(tally, channel, list), {
    concurrency: countedAtOnce,
    discard: true
  })
  // First: after a crash in between, outcomes are counted again beside the present progress.
  yield* channels.flush
  yield* broadcasts.flush
})

/**
 * Counts the pushes of one channel as it is now: those of broadcasts before its present begin, or
 * of a channel that nobody is registered on, are forgotten.
 */
const countPushes = Effect.fnUntraced(function* (
  { buckets, channels }: Tally,
  channel: ChannelToken,
  delivered: ReadonlyArray<Delivered>
) {
  const key = keys.channelPushes(channel)
  const count = yield* buckets.get("channels", keys.channelRegistrations(channel))
  yield* channels.load([key])
  if (count === undefined || count.value.registrations === 0) return channels.remove(key)
  const stored = channels.get(key)
  const before = pushesSince(stored, count.value.since)
  const next = delivered.reduce(evolvePushes, before)
  if (next === before) return
  const seq = delivered[0]!.seq
  if (before === stored) channels.set(key, next, seq)
  else channels.replace(key, next, seq)
})

interface Due {
  readonly failures: Failures
  /** Sequence of the outcome by which the share was reached. */
  readonly seq: number
}

const warn = makeRateLimitedLog("broadcasts of which pushes fail cannot be paused yet")

const makePauses = Effect.gen(function* () {
  const context = yield* Effect.context<EventLog | Buckets>()
  const due = new Map<number, Due>()

  const pause = Effect.fnUntraced(
    function* (broadcast: number, failures: Failures) {
      const origin = yield* originOf(broadcast)
      const at = yield* Clock.currentTimeMillis
      if (origin !== undefined) yield* pauseFailed(origin, failures, at)
      due.delete(broadcast)
    },
    Effect.catchTag("AppendConflict", () => Effect.void),
    (effect, broadcast) =>
      Effect.catchReason(effect, "NatsUnavailable", "NoRoom", () => warn({ broadcast }))
  )

  return {
    add: (broadcast: number, failures: Failures, seq: number): void => {
      due.set(broadcast, { failures, seq })
    },
    /** Stores what is due. What has no room, or changes all the time, is tried again. */
    store: Effect.suspend(() =>
      Effect.forEach([...due], ([broadcast, { failures }]) => pause(broadcast, failures), {
        discard: true
      })
    ).pipe(Effect.provideContext(context)),
    /** Sequence of the first message whose pause is not stored, or Infinity. */
    waitingSince: () => Math.min(...[...due.values()].map(({ seq }) => seq))
  }
})
