// WORK -> broadcasts, channels: counts what became of pushes, and tells LOG when a broadcast is finished.
import { Effect, Layer } from "effect"
import {
  emptyPushes,
  evolveProgress,
  evolvePushes,
  type Progress,
  startProgress
} from "#domain/outcome.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { makeFacts } from "#nats/follower/facts.ts"
import { Followers } from "#nats/follower/follower.ts"
import { makeMemory } from "#nats/kv/cached-entries.ts"
import { makeWriteBackCache } from "#nats/kv/write-back-cache.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { parseOfBroadcast, subjects } from "#streams/subjects.ts"

/** All that a batch can finish: they are stored together. */
const finishedAtOnce = 256

/** Entries that wait for the next second; beyond it they are stored at once. */
const changesMax = 4_096

/** Bytes of JSON kept in memory; progress and counts have a few hundred each. */
const memoryBytesMax = 16 * 1024 ** 2

interface Finished {
  readonly subject: string
  readonly progress: Progress
  /** Sequence of the message that finished it. */
  readonly seq: number
}

export const start = Effect.fnUntraced(function* (from: number) {
  const memory = makeMemory(memoryBytesMax)
  const broadcasts = yield* makeWriteBackCache<EntryKey<"broadcast">>("broadcasts", memory)
  const channels = yield* makeWriteBackCache<EntryKey<"channelPushes">>("channels", memory)
  const facts = yield* makeFacts
  /** No earlier run counted a later message. */
  const countedUpTo = (yield* streamState(streams.work))?.lastSeq ?? 0

  /** Counts one message; returns the fact to record when it finished its broadcast. */
  const count = ({ message, seq, subject }: Stored): Finished | undefined => {
    const place = parseOfBroadcast(subject)
    if (place === undefined) return undefined
    const key = keys.broadcast(place.broadcast)
    const before = broadcasts.get(key)
    if (message.type === "plan/1") {
      const plan = { ...message, broadcast: place.broadcast }
      broadcasts.set(key, before ?? startProgress(plan, seq), seq)
    }
    if (message.type === "outcome/1") {
      const pushes = keys.channelPushes(place.channel)
      channels.set(pushes, evolvePushes(channels.get(pushes) ?? emptyPushes, message, seq), seq)
      // Without its plan a broadcast is older than the bucket remembers; its channel still counts.
      if (before !== undefined)
        broadcasts.set(key, evolveProgress(before, message, place.of, seq), seq)
    }
    const progress = broadcasts.get(key)
    return progress?.finished === true && before?.finished !== true
      ? { subject: subjects.finished(place.channel, place.broadcast), progress, seq }
      : undefined
  }

  /** The fact takes the place of the progress, which is not removed before the fact is stored. */
  const record = Effect.fnUntraced(function* ({ progress, seq, subject }: Finished) {
    const key = keys.broadcast(progress.broadcast)
    const message = { subject, type: "broadcast.finished/1", body: progress } as const
    const stored = () => {
      broadcasts.release(key)
      broadcasts.remove(key)
    }
    broadcasts.hold(key)
    if (yield* facts.record({ message, seq, stored })) stored()
  })

  const flush = Effect.all([broadcasts.flush, channels.flush], {
    concurrency: "unbounded",
    discard: true
  })

  const apply = Effect.fnUntraced(function* (
    batch: ReadonlyArray<Stored>
  ): Effect.fn.Return<void, NatsUnavailable> {
    const places = batch.flatMap(({ message, seq, subject }) => {
      const place = parseOfBroadcast(subject)
      const isNew = message.type === "plan/1" && seq > countedUpTo
      if (place !== undefined && isNew) broadcasts.loadAbsent(keys.broadcast(place.broadcast))
      return place ?? []
    })
    yield* Effect.all(
      [
        broadcasts.load(places.map(({ broadcast }) => keys.broadcast(broadcast))),
        channels.load(places.map(({ channel }) => keys.channelPushes(channel)))
      ],
      { concurrency: "unbounded", discard: true }
    )
    const finished = batch.flatMap((stored) => count(stored) ?? [])
    // The fact goes first: a crash in between finds the broadcast unfinished and records the same
    // fact again, which is refused.
    yield* Effect.forEach(finished, record, { concurrency: finishedAtOnce, discard: true })
    if (broadcasts.changes() + channels.changes() > changesMax) yield* flush
  })

  const store = Effect.gen(function* () {
    yield* facts.retry
    yield* flush
    yield* broadcasts.retry
    yield* channels.retry
  })

  const unstoredSince = () =>
    Math.min(broadcasts.unstoredSince(), channels.unstoredSince(), facts.waitingSince())

  return { from, apply, store, unstoredSince }
})

/** Runs the tally for as long as the layer lives. */
export const tallyLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("tally", start))
  })
)
