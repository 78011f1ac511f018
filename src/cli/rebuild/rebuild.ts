// `bellcast rebuild`: builds the buckets from the streams, with the same values. LOG has
// subscriptions, registrations and their counts. WORK has progress and pushes of the last weeks;
// for older broadcasts LOG has the final counts.
import * as Console from "effect/Console"
import * as Command from "effect/cli/Command"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { monotonicMillis } from "#clock/clocks.ts"
import { type ChannelPushes, pushesSince } from "#domain/outcome.ts"
import type { Progress } from "#domain/progress.ts"
import { bucketState, emptyBucket, streamState } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { refuseOtherStreams } from "#nats/admin/start-checks.ts"
import { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Follower, Followers } from "#nats/follower/follower.ts"
import { overdueMillisOf } from "#nats/follower/lease.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type MemoryBuckets, makeMemoryBuckets } from "#nats/kv/memory-buckets.ts"
import type { Mark } from "#nats/kv/values.ts"
import type { StreamKey } from "#nats/stream/append.ts"
import { gaveUp } from "#nats/stream/consumer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { passedOver, type Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { EndedMillis } from "#projection/forget.ts"
import { start as startProjector } from "#projection/projector.ts"
import { type BucketName, buckets, keys, metaKey, projections } from "#streams/buckets.ts"
import { type FollowerName, followerNames, followers } from "#streams/followers.ts"
import { storedForm, streams } from "#streams/index.ts"
import { filters, parseOfBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { start as startTally } from "#tally/tally.ts"
import { natsFlags, onNats } from "../nats/on-nats.ts"
import { failed, failedBy, note, table, type VerbFailed } from "../terminal/output.ts"
import { fitWorkToLog } from "./work-of-log.ts"
import { pauseWork, writeBuckets } from "./write.ts"

/**
 * Makes the buckets equal to what the streams say. Folds in memory, so that a bucket is written
 * only where it differs, and everything else goes on meanwhile. Returns how many entries each has,
 * and how many were written or removed. Fails if projection or tally runs.
 */
export const rebuild = Effect.fn("Cli.rebuild")(function* () {
  const log = yield* streamState(streams.log)
  if (log === undefined)
    return yield* failed(
      `this NATS has no stream ${streams.log.name}: there is nothing to rebuild from`
    )
  yield* refuseOtherStreams.pipe(Effect.catchTag("StartRefused", failedBy))
  // First make what else is missing, such as the bucket of leases.
  yield* provision(log.replicas, {}, ["cache"])
  const leases = yield* Effect.forEach(followerNames, holdLease)
  const changes = yield* Effect.raceAllFirst([
    foldAndWrite(log.replicas),
    ...leases.map(({ lost }) => lost)
  ])
  return yield* Effect.forEach(changes, ({ bucket, changed }) =>
    Effect.map(bucketState(bucket), (state) => ({
      bucket: buckets[bucket].name,
      entries: (state?.messages ?? 1) - 1,
      changed
    }))
  )
}, Effect.scoped)

const foldAndWrite = Effect.fnUntraced(function* (replicas: number) {
  const { lastWork, taken } = yield* fitWorkToLog
  const { floors, ...history } = yield* readHistory(lastWork)
  const memory = yield* foldAll(history, taken)
  const anew = yield* unreadable(floors)
  return anew.length === 0
    ? yield* writeBuckets(memory)
    : yield* writePaused(replicas, floors, anew, memory)
})

/**
 * The final counts of broadcasts that WORK has no longer or not to their end, the commands that the
 * projector gave up, and the revisions that jobs of WORK wait for.
 */
const readHistory = Effect.fnUntraced(function* (lastWork: number) {
  const log = yield* EventLog
  const planned = new Set<number>()
  const facts: Array<Fact> = []
  /** The revisions that jobs in WORK wait for. */
  let [subscriptions, registrations] = [0, 0]
  yield* log.replay("work", [filters.plans], ({ message }) => {
    if (message.type !== "plan/1") return
    planned.add(message.broadcast)
    subscriptions = Math.max(subscriptions, message.floor.subscriptions)
    registrations = Math.max(registrations, message.floor.registrations)
  })
  yield* log.replay("log", [filters.finished], ({ message, subject, text }) => {
    if (message.type !== "broadcast.finished/1") return
    // WORK counts it, unless it was copied before the broadcast was finished.
    if (planned.has(message.broadcast) && message.seq <= lastWork) return
    const channel = subject.split(".").at(-2) as ChannelToken
    if (subjects.finished(channel, message.broadcast) !== subject) return
    const progress = JSON.parse(text) as Progress
    facts.push({ channel, progress: { ...progress, seq: Math.min(progress.seq, lastWork) } })
  })
  /** Sequences. A rebuild passes over them, too: it would die on them. */
  const givenUp = new Set<number>()
  yield* log.replay("log", [filters.rejected], ({ message }) => {
    if (message.type === "command.rejected/1" && message.reason === gaveUp)
      givenUp.add(message.command)
  })
  return { facts, givenUp, floors: { subscriptions, registrations } }
})
type History = Effect.Success<ReturnType<typeof readHistory>>

/** Final counts of a broadcast, from LOG. */
interface Fact {
  readonly channel: ChannelToken
  readonly progress: Progress
}

/** Folds the streams into memory, up to their present ends. */
const foldAll = Effect.fnUntraced(function* (
  { facts, givenUp }: Pick<History, "facts" | "givenUp">,
  taken: number
) {
  const memory = makeMemoryBuckets()
  const ended = yield* makeEnded
  // Skip what WORK still has of a broadcast whose plan has expired: its final counts include it.
  const forgotten = new Set(facts.map(({ progress }) => progress.broadcast))
  const counted = (stored: Stored) =>
    forgotten.has(parseOfBroadcast(stored.subject)?.broadcast ?? 0) ? undefined : stored
  yield* Effect.gen(function* () {
    yield* replayInto("projector", yield* startProjector, (stored) => {
      ended.see(stored)
      return givenUp.has(stored.seq) ? passedOver(stored, gaveUp) : stored
    })
    yield* ended.forget(memory)
    yield* replayInto("tally", yield* startTally(0), counted).pipe(
      // The service logged these broadcasts when they finished.
      Effect.provideService(References.MinimumLogLevel, "Warn")
    )
    yield* Effect.forEach(facts, restore, { discard: true })
    if (taken > 0) yield* noteTaken(taken)
  }).pipe(Effect.provideService(Buckets, memory.buckets), Effect.provideService(Watermark, silent))
  return memory
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
  const flush = Effect.suspend(() => {
    const full = batch
    batch = []
    return full.length === 0 ? Effect.void : follower.apply(full)
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

/** Adds the pushes of a broadcast whose messages in WORK have expired. */
const restore = Effect.fnUntraced(function* ({ channel, progress }: Fact) {
  const bucket = yield* Buckets
  // A broadcast without shards has no outcomes, and the bucket counts outcomes only.
  if (progress.shards === 0) return
  const counted = yield* bucket.get("channels", keys.channelRegistrations(channel))
  // The channel was forgotten since, or has begun anew.
  if (counted === undefined || progress.broadcast < counted.value.since) return
  const key = keys.channelPushes(channel)
  const entry = yield* bucket.get("channels", key)
  const before = pushesSince(entry?.value, counted.value.since)
  const next: ChannelPushes = {
    v: 1,
    seq: Math.max(before.seq, progress.seq),
    since: before.since,
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

/** The projector of a rebuild: nobody waits for what it has applied. */
const silent = Watermark.of({
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
 * `see` is told of each command in LOG. `forget` then removes the registrations from memory that
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
  const forget = ({ buckets, entries }: MemoryBuckets) => {
    const all = [...entries("registrations").values()]
    return Effect.forEach(
      all.filter(({ text }) => isForgotten(text)),
      ({ revision }) => buckets.remove("registrations", revision),
      { discard: true }
    )
  }
  return { see, forget }
})

/**
 * The buckets that workers must not read before they are written: those that are missing, were left
 * half built, or have lower revisions than jobs in WORK wait for.
 */
const unreadable = Effect.fnUntraced(function* (floors: Floors) {
  const { get } = yield* Buckets
  return yield* Effect.filter(projections, (bucket) =>
    Effect.gen(function* () {
      const state = yield* bucketState(bucket)
      if (state === undefined || state.form !== storedForm.buckets) return true
      if (state.lastSeq < (floors[bucket] ?? 0)) return true
      const meta = (yield* get(bucket, metaKey))?.value
      return meta === undefined || meta.unbuilt === true
    })
  )
})

/** The revisions that the buckets must have at least. */
type Floors = Partial<Record<BucketName, number>>

/** Pauses planning and delivery, makes these buckets anew, and writes what differs. */
const writePaused = Effect.fnUntraced(function* (
  replicas: number,
  floors: Floors,
  anew: ReadonlyArray<BucketName>,
  memory: MemoryBuckets
) {
  const pause = yield* pauseWork
  yield* pause.keep
  const write = Effect.andThen(
    Effect.forEach(anew, (bucket) => emptyBucket(bucket, replicas, floors[bucket] ?? 0), {
      discard: true
    }),
    writeBuckets(memory)
  )
  const changes = yield* Effect.raceFirst(write, pause.held)
  yield* pause.end
  return changes
}, Effect.scoped)

/**
 * Holds a follower's lease until the scope ends. Fails if a running service keeps it. `lost` fails
 * if the lease is lost later.
 */
const holdLease = Effect.fnUntraced(function* (name: FollowerName) {
  const followers = yield* Followers
  const former = yield* (yield* Buckets).get("cache", keys.lease(name))
  // A lease that is not renewed is taken within this time.
  const waitMillis = overdueMillisOf(former?.value) + 1_000
  const held = yield* Deferred.make<void>()
  const lost = yield* Deferred.make<never, VerbFailed>()
  const loss = Deferred.fail(lost, failed(`the lease of the ${name} was lost: run this again`))
  const hold = Deferred.succeed(held, undefined).pipe(
    Effect.andThen(Effect.never),
    Effect.ensuring(loss)
  )
  yield* Effect.forkScoped(followers.whileLeased(name, hold))
  const announce = note(`waiting for the lease of the ${name}, at most ${waitMillis / 1000} s`)
  yield* Deferred.await(held).pipe(
    Effect.timeoutOrElse({
      duration: announceMillis,
      orElse: () => Effect.andThen(announce, Deferred.await(held))
    }),
    Effect.timeoutOrElse({
      duration: waitMillis,
      orElse: () =>
        Effect.fail(failed(`a running service holds the lease of the ${name}: stop it first`))
    })
  )
  return { lost: Deferred.await(lost) }
})

/** After this time the wait is announced. A free lease is taken sooner. */
const announceMillis = 500

/** The verb. */
export const rebuildCommand = Command.make("rebuild", natsFlags, (nats) =>
  Effect.gen(function* () {
    const startedAt = yield* monotonicMillis
    const done = yield* rebuild()
    const rows = done.map(({ bucket, changed, entries }) => [bucket, entries, changed])
    const millis = (yield* monotonicMillis) - startedAt
    yield* Console.log(`${table(["BUCKET", "ENTRIES", "CHANGED"], rows)}\nrebuilt in ${millis} ms`)
  }).pipe(onNats(nats, { startIt: true }))
).pipe(
  Command.withDescription(
    "Make the buckets equal to what the streams say; stop projection and tally first"
  )
)
