// `bellcast rebuild`: builds the buckets from the streams, with the same values. LOG has
// subscriptions, registrations and their counts. WORK has progress and pushes of the last weeks;
// for older broadcasts LOG has the final counts.
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { monotonicMillis } from "#clock/monotonic.ts"
import { type ChannelPushes, emptyPushes, type Progress } from "#domain/outcome.ts"
import { bucketState, emptyBucket, streamState } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import type { Mark } from "#nats/copies/marks.ts"
import type { Follower } from "#nats/follower/follower.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { StreamKey } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { start as startProjector } from "#projection/projector.ts"
import { buckets, keys, metaKey, projections } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import { filters, parseOfBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { start as startTally } from "#tally/tally.ts"
import { holdLease } from "./nats/leases.ts"
import { natsFlags, onNats, VerbFailed } from "./nats/nats.ts"
import { pauseWork } from "./nats/pause.ts"
import { fitWorkToLog } from "./nats/work-of-log.ts"
import { table } from "./terminal/table.ts"

/** Messages that are applied together. */
const batchMax = 256

/** Final counts of a broadcast, from LOG. */
interface Fact {
  readonly channel: ChannelToken
  readonly progress: Progress
}

/** Reads what is needed before any bucket is emptied. */
const readHistory = Effect.fnUntraced(function* (lastWork: number) {
  const log = yield* EventLog
  const planned = new Set<number>()
  const facts: Array<Fact> = []
  let floor = 0
  yield* log.replay("work", [filters.plans], ({ message }) =>
    Effect.sync(() => {
      if (message.type !== "plan/1") return
      planned.add(message.broadcast)
      floor = Math.max(floor, message.floor.subscriptions, message.floor.registrations)
    })
  )
  yield* log.replay("log", [filters.finished], ({ message, subject, text }) =>
    Effect.sync(() => {
      if (message.type !== "broadcast.finished/1") return
      // WORK counts it, unless it was copied before the broadcast was finished.
      if (planned.has(message.broadcast) && message.seq <= lastWork) return
      const channel = subject.split(".").at(-2) as ChannelToken
      if (subjects.finished(channel, message.broadcast) !== subject) return
      const progress = JSON.parse(text) as Progress
      facts.push({ channel, progress: { ...progress, seq: Math.min(progress.seq, lastWork) } })
    })
  )
  return { facts, floor }
})

/**
 * Applies a stream from its beginning to its present end, and writes the checkpoint for the
 * follower.
 */
const replayInto = Effect.fnUntraced(function* (
  name: FollowerName,
  follower: Follower,
  wanted: (stored: Stored) => boolean
) {
  const log = yield* EventLog
  const { checkpoint, filters, stream } = followers[name]
  let batch: Array<Stored> = []
  let last: Pick<Mark, "seq" | "at"> = { seq: 0, at: 0 }
  const flush = Effect.suspend(() => {
    const full = batch
    batch = []
    return full.length === 0 ? Effect.void : follower.apply(full)
  })
  yield* log.replay(stream satisfies StreamKey, filters, (stored) => {
    last = { seq: stored.seq, at: stored.at }
    if (wanted(stored)) batch.push(stored)
    return batch.length < batchMax ? Effect.void : flush
  })
  yield* flush
  yield* follower.store
  if (follower.unstoredSince() <= last.seq)
    return yield* new VerbFailed({
      message: "a bucket or LOG has no room for what the streams hold: make it larger, run it again"
    })
  const buckets = yield* Buckets
  const meta = yield* buckets.get(checkpoint, metaKey)
  const mark = { ...last, revisions: follower.revisions() }
  const checked = last.seq === 0 ? {} : { mark }
  yield* buckets.put(
    checkpoint,
    metaKey,
    { v: 1, seq: last.seq, ...follower.notes, ...checked },
    meta?.revision ?? 0
  )
})

/** Adds the pushes of a broadcast whose messages in WORK have expired. */
const restore = Effect.fnUntraced(function* ({ channel, progress }: Fact) {
  const bucket = yield* Buckets
  // A broadcast without shards has no outcomes, and the bucket counts outcomes only.
  if (progress.shards === 0) return
  const key = keys.channelPushes(channel)
  const entry = yield* bucket.get("channels", key)
  const before = entry?.value ?? emptyPushes
  const next: ChannelPushes = {
    v: 1,
    seq: Math.max(before.seq, progress.seq),
    pushes: before.pushes + progress.delivered,
    lastModified:
      progress.delivered === 0
        ? before.lastModified
        : Math.max(before.lastModified, progress.lastModified)
  }
  yield* bucket.put("channels", key, next, entry?.revision ?? 0)
})

/** Notes for later starts that LOG counts outcomes which WORK lacks. */
const noteTaken = Effect.fnUntraced(function* (taken: number) {
  const buckets = yield* Buckets
  const meta = yield* buckets.get("channels", metaKey)
  yield* buckets.put("channels", metaKey, { v: 1, taken }, meta?.revision ?? 0)
})

const replayAll = Effect.fnUntraced(function* (replicas: number, emptied: Effect.Effect<void>) {
  const { lastWork, taken } = yield* fitWorkToLog
  const { facts, floor } = yield* readHistory(lastWork)
  yield* emptied
  yield* Effect.forEach(projections, (bucket) => emptyBucket(bucket, replicas, floor), {
    discard: true
  })
  yield* replayInto("projector", yield* startProjector(0), () => true)
  // Skip what WORK still has of a broadcast whose plan has expired: its final counts include it.
  const forgotten = new Set(facts.map(({ progress }) => progress.broadcast))
  const wanted = ({ subject }: Stored) => !forgotten.has(parseOfBroadcast(subject)?.broadcast ?? 0)
  yield* replayInto("tally", yield* startTally(0), wanted)
  yield* Effect.forEach(facts, restore, { discard: true })
  if (taken > 0) yield* noteTaken(taken)
})

/**
 * Builds the buckets while planning and delivery are paused. Returns the number of entries of each.
 * Fails if projection or tally runs.
 */
export const rebuild = Effect.fn("Cli.rebuild")(function* () {
  const log = yield* streamState(streams.log)
  if (log === undefined)
    return yield* new VerbFailed({
      message: `this NATS has no stream ${streams.log.name}: there is nothing to rebuild from`
    })
  // First make what else is missing, such as the bucket of leases.
  yield* provision(log.replicas, {}, true)
  const leases = yield* Effect.forEach(Object.keys(followers) as Array<FollowerName>, holdLease)
  const pause = yield* pauseWork
  yield* Effect.raceAllFirst([
    replayAll(log.replicas, pause.keep),
    pause.held,
    ...leases.map(({ lost }) => lost)
  ])
  yield* pause.end
  return yield* Effect.forEach(projections, (bucket) =>
    Effect.map(bucketState(bucket), (state) => ({
      bucket: buckets[bucket].name,
      entries: (state?.messages ?? 1) - 1
    }))
  )
}, Effect.scoped)

/** The verb. */
export const rebuildCommand = Command.make("rebuild", natsFlags, (nats) =>
  Effect.gen(function* () {
    const startedAt = yield* monotonicMillis
    const done = yield* rebuild()
    const rows = done.map(({ bucket, entries }) => [bucket, entries])
    const millis = (yield* monotonicMillis) - startedAt
    yield* Console.log(`${table(["BUCKET", "ENTRIES"], rows)}\nrebuilt in ${millis} ms`)
  }).pipe(onNats(nats, { startIt: true }))
).pipe(
  Command.withDescription(
    "Build the buckets anew from the streams; stop projection and tally first, the rest waits"
  )
)
