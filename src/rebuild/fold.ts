// Folds LOG and WORK into buckets of this process, with the same values that the service stores.
// LOG has subscriptions, registrations and their counts. WORK has progress and pushes of the last
// weeks; for older broadcasts LOG has the final counts, and sums of the oldest.
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import {
  type ChannelPushes,
  type ChannelSummed,
  pushesSince,
  withFinal,
  withSum
} from "#domain/outcome.ts"
import type { Marks } from "#domain/subscription/command.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { NatsUnavailable } from "#nats/connection/errors.ts"
import type { Follower } from "#nats/follower/follower.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type DiskBuckets, makeDiskBuckets } from "#nats/kv/disk-buckets.ts"
import type { Mark } from "#nats/kv/values.ts"
import type { StreamKey } from "#nats/stream/append.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { passedOver, type Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { type Final, finalIn, sumIn } from "#projection/channel-sums.ts"
import { EndedMillis } from "#projection/forget.ts"
import { start as startProjector } from "#projection/projector.ts"
import { keys, metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import { filters, parseOfBroadcast } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { start as startTally } from "#tally/tally.ts"
import { failed, reach } from "./notes.ts"

/**
 * Folds the streams up to their present ends, and says which revisions the buckets must have at
 * least. The folded buckets are there until the scope closes. `lastWork`: the last message of WORK.
 * `taken`: LOG counts outcomes up to this sequence that WORK lacks; 0: WORK lacks none.
 */
export const foldStreams = Effect.fnUntraced(function* (lastWork: number, taken: number) {
  const { floors, ...history } = yield* readHistory(lastWork)
  const folded = yield* foldAll(history, taken)
  return { floors, folded }
})

/**
 * The broadcasts that WORK has plans of, the sums of final counts, the facts about commands, and
 * the revisions that jobs of WORK wait for.
 */
const readHistory = Effect.fnUntraced(function* (lastWork: number) {
  const log = yield* EventLog
  const planned = new Set<number>()
  const sums = new Map<ChannelToken, ChannelSummed>()
  /** The revisions that jobs in WORK wait for. */
  let [subscriptions, registrations] = [0, 0]
  yield* log.replay("work", [filters.plans], ({ message }) => {
    if (message.type !== "plan") return
    planned.add(message.broadcast)
    subscriptions = Math.max(subscriptions, message.floor.subscriptions)
    registrations = Math.max(registrations, message.floor.registrations)
  })
  yield* log.replay("log", [filters.summed], (stored) => {
    const found = sumIn(stored)
    if (found === undefined) return
    const { channel, sum } = found
    sums.set(channel, { ...sum, seq: Math.min(sum.seq, lastWork) })
  })
  /**
   * Reasons by sequence. A rebuild passes over them, too: it would die on those that the projector
   * gave up, and LOG may lack what the others were rejected for.
   */
  const rejected = new Map<number, string>()
  const marks = new Map<number, Marks>()
  yield* log.replay("log", [filters.rejected, filters.taken], ({ message }) => {
    if (message.type === "command.rejected") rejected.set(message.command, message.reason)
    if (message.type === "subscription.taken") marks.set(message.command, message.taken)
  })
  return { lastWork, planned, sums, rejected, marks, floors: { subscriptions, registrations } }
})
type History = Omit<Effect.Success<ReturnType<typeof readHistory>>, "floors">

/**
 * Passes the final counts of broadcasts to `each` that WORK has no longer, or not to their end. LOG
 * has millions of them, so none is kept.
 */
const eachFinal = Effect.fnUntraced(function* <E, R>(
  { lastWork, planned }: History,
  each: (final: Final) => Effect.Effect<void, E, R>
) {
  yield* (yield* EventLog).replay("log", [filters.finished], (stored) => {
    const final = finalIn(stored)
    if (final === undefined) return Effect.void
    const { broadcast, delivered, lastModified, seq, shards, since } = final.counts
    // WORK counts it, unless it was copied before the broadcast was finished.
    if (planned.has(broadcast) && seq <= lastWork) return Effect.void
    const counts = { broadcast, delivered, lastModified, seq: Math.min(seq, lastWork), shards }
    return each({ ...final, counts: since === undefined ? counts : { ...counts, since } })
  })
})

/** Folds the streams, up to their present ends. */
const foldAll = Effect.fnUntraced(function* (history: History, taken: number) {
  const { marks, rejected, sums } = history
  const folded = yield* makeDiskBuckets
  const ended = yield* makeEnded
  const forgotten = yield* readForgotten(history)
  const counted = (stored: Stored) =>
    forgotten.has(parseOfBroadcast(stored.subject)?.broadcast ?? 0) ? undefined : stored
  yield* Effect.gen(function* () {
    yield* replayInto("projector", yield* startProjector(marks), (stored) => {
      ended.see(stored)
      const reason = rejected.get(stored.seq)
      return reason === undefined ? stored : passedOver(stored, reason)
    })
    yield* ended.forget(folded)
    yield* replayInto("tally", yield* startTally(0), counted).pipe(
      // The service logged these broadcasts when they finished.
      Effect.provideService(References.MinimumLogLevel, "Warn")
    )
    // The pushes of broadcasts whose messages in WORK have expired.
    yield* eachFinal(history, (final) =>
      restore(final.channel, (pushes) => withFinal(pushes, sums.get(final.channel), final))
    )
    for (const [channel, sum] of sums) yield* restore(channel, (pushes) => withSum(pushes, sum))
    if (taken > 0) yield* noteTaken(taken)
  }).pipe(Effect.provideService(Buckets, folded.buckets), Effect.provideService(Watermark, silent))
  return folded
})

/**
 * Broadcasts of which WORK may have some outcomes, but not the plan: their final counts include
 * these. Of a broadcast that ended before WORK's first message, WORK has nothing.
 */
const readForgotten = Effect.fnUntraced(function* (history: History) {
  const state = yield* streamState(streams.work)
  const firstSeq = state?.firstSeq ?? 0
  const forgotten = new Set<number>()
  yield* eachFinal(history, ({ counts: { broadcast, seq } }) => {
    if (seq >= firstSeq) forgotten.add(broadcast)
    return Effect.void
  })
  return forgotten
})

/** Messages that are applied together. */
const batchMax = 256

/**
 * Applies a stream from its beginning to its present end, and writes the checkpoint for the
 * follower. `taken`: what to apply of a message.
 */
const replayInto = Effect.fnUntraced(function* (
  name: FollowerName,
  follower: Follower,
  taken: (stored: Stored) => Stored | undefined
) {
  const log = yield* EventLog
  const { checkpoint, filters, stream } = followers[name]
  let batch: Array<Stored> = []
  let last: Pick<Mark, "seq" | "at"> = { seq: 0, at: 0 }
  const of = (yield* streamState(streams[stream]))?.lastSeq ?? 0
  const flush = Effect.suspend(() => {
    const full = batch
    batch = []
    if (full.length === 0) return Effect.void
    const { name } = streams[stream]
    return Effect.andThen(
      follower.apply(full),
      reach({ stream: name, step: "folded", done: last.seq, of })
    )
  })
  let before: number
  do {
    before = last.seq
    yield* log.replay(stream satisfies StreamKey, filters, (stored) => {
      if (stored.seq <= before) return Effect.void
      last = { seq: stored.seq, at: stored.at }
      const one = taken(stored)
      if (one !== undefined) batch.push(one)
      return batch.length < batchMax ? Effect.void : flush
    })
    yield* flush
    // Appends to LOG where moves are not complete. Then read what is there since.
    yield* follower.store(Number.POSITIVE_INFINITY)
  } while (follower.unstoredSince() <= last.seq && last.seq > before)
  if (follower.unstoredSince() <= last.seq)
    return yield* failed(
      "a bucket or LOG has no room for what the streams hold: make it larger, run it again"
    )
  const buckets = yield* Buckets
  const meta = yield* buckets.get(checkpoint, metaKey)
  const mark = { ...last, revisions: follower.revisions() }
  const checked = last.seq === 0 ? {} : { mark }
  yield* buckets.put(checkpoint, metaKey, { v: 1, seq: last.seq, ...checked }, meta?.revision ?? 0)
})

/** Changes the pushes of a channel, unless it was forgotten. */
const restore = Effect.fnUntraced(function* (
  channel: ChannelToken,
  more: (pushes: ChannelPushes) => ChannelPushes
) {
  const bucket = yield* Buckets
  const counted = yield* bucket.get("channels", keys.channelRegistrations(channel))
  if (counted === undefined) return
  const key = keys.channelPushes(channel)
  const entry = yield* bucket.get("channels", key)
  const before = pushesSince(entry?.value, counted.value.since)
  const after = more(before)
  if (after !== before) yield* bucket.put("channels", key, after, entry?.revision ?? 0)
})

/** Notes for later starts that LOG counts outcomes which WORK lacks. */
const noteTaken = Effect.fnUntraced(function* (taken: number) {
  const buckets = yield* Buckets
  const meta = yield* buckets.get("channels", metaKey)
  yield* buckets.put("channels", metaKey, { v: 1, taken }, meta?.revision ?? 0)
})

/** The projector of a rebuild: nobody waits for what it has applied. */
export const silent = Watermark.of({
  announce: () => Effect.void,
  retract: Effect.void,
  reached: (seq) =>
    new NatsUnavailable({
      operation: "projection",
      reason: { _tag: "NotApplied", seq },
      cause: new Error("a rebuild is under way")
    })
})

/**
 * `see` is told of each command in LOG. `forget` then removes the folded registrations that
 * ended before those commands for which the service still keeps such entries.
 */
const makeEnded = Effect.gen(function* () {
  const since = (yield* readServerTime).serverMillis - (yield* EndedMillis)
  let keptFrom = Number.POSITIVE_INFINITY
  const see = ({ at, seq }: Stored): void => {
    if (at >= since) keptFrom = Math.min(keptFrom, seq)
  }
  const isForgotten = (text: string): boolean => {
    const { on, seq = 0 } = JSON.parse(text) as { readonly on?: boolean; readonly seq?: number }
    return on === false && seq < keptFrom
  }
  const forget = Effect.fnUntraced(function* ({ after, buckets }: DiskBuckets) {
    for (let last = 0; ; ) {
      const part = after("registrations", last)
      if (part.length === 0) return
      yield* Effect.yieldNow
      last = part.at(-1)!.revision
      yield* Effect.forEach(
        part.filter(({ text }) => isForgotten(text)),
        ({ revision }) => buckets.remove("registrations", revision),
        { discard: true }
      )
    }
  })
  return { see, forget }
})
