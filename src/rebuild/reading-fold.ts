// A fold of LOG and WORK that changes nothing and goes on while a service runs: what the buckets
// are compared with. It reads without a consumer, so that an auditor may run it. What the projector
// or the tally would append, it expects the service to append: until LOG has it, the fold waits as
// a service waits for room.
//
// The driver of fold.ts is another one. A rebuild must reach the end that the leader states, and a
// direct read may be answered by a replica that is behind. It appends what followers have to
// append, and reads that, too, and it knows which broadcasts LOG counts before it reads WORK. This
// driver may be behind for a moment, goes on later from where it was, message by message, and asks
// LOG about a broadcast when it meets it. One driver for both would have all of that as parameters.
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import {
  type ChannelPushes,
  type ChannelSummed,
  emptyPushes,
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
import { EventLog } from "#nats/stream/event-log.ts"
import { passedOver, type Stored } from "#nats/stream/stored.ts"
import { finalIn, sumIn } from "#projection/channel-sums.ts"
import { start as startProjector } from "#projection/projector.ts"
import { type BucketName, keys } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import { filters, parseOfBroadcast, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { start as startTally } from "#tally/tally.ts"
import { silent } from "./fold.ts"

/** Sequences of the last messages that were folded. */
export type Position = Readonly<Record<FollowerName, number>>

export interface ReadingFold {
  /** As folded so far. */
  readonly folded: DiskBuckets
  readonly position: () => Position
  /** Folds on to the present ends of the streams. */
  readonly goOn: Effect.Effect<void, NatsUnavailable>
  /**
   * As `goOn`, message by message. Calls `changed` with each value, in turn, that one of these
   * entries has; undefined: it was removed.
   */
  readonly goOnWatching: (
    watched: ReadonlyArray<EntryName>,
    changed: (entry: EntryName, text: string | undefined) => void
  ) => Effect.Effect<void, NatsUnavailable>
  /**
   * The sums that broadcasts whose outcomes have expired add to a channel, by the counts in LOG.
   * Complete after the first `goOn`.
   */
  readonly expired: ReadonlyMap<ChannelToken, ChannelPushes>
  /** WORK is folded from this time on, in milliseconds since the epoch. */
  readonly workSince: number
}

export interface EntryName {
  readonly bucket: BucketName
  readonly key: string
}

/** Messages that are applied together. */
const batchMax = 256

/**
 * WORK is read from so much after its oldest messages on: these may expire while it is read, and
 * the outcomes of a broadcast before its plan was read. LOG has the counts of such broadcasts.
 */
const expiryMarginMillis = 3_600_000

interface State {
  readonly log: EventLog["Service"]
  readonly buckets: Buckets["Service"]
  readonly followers: Readonly<Record<FollowerName, Follower>>
  /** Sequences up to which the streams were read. */
  readonly at: Record<FollowerName, number>
  /** Sequences of the last messages that were folded. */
  readonly folded: Record<FollowerName, number>
  /**
   * Commands that the projector of a service rejected, with the reasons, up to the message
   * `readUpTo` of LOG, which may lack what they were rejected for.
   */
  readonly rejected: { readonly reasons: Map<number, string>; readUpTo: number }
  /** Likewise: what was another user's when it folded a command. */
  readonly taken: { readonly marks: Map<number, Marks>; readUpTo: number }
  /** Broadcasts that have a plan in the part of WORK that is folded, up to `readUpTo`. */
  readonly planned: { readonly broadcasts: Set<number>; readUpTo: number }
  /** Broadcasts with an outcome and no plan: whether LOG has the final counts. */
  readonly ended: Map<number, boolean>
}

export const openReadingFold = Effect.gen(function* () {
  const disk = yield* makeDiskBuckets
  const watch = makeWatch(disk)
  const log = readOnly(yield* EventLog)
  const services = (yield* Effect.context<never>()).pipe(
    Context.add(EventLog, log),
    Context.add(Buckets, watch.buckets),
    Context.add(Watermark, silent),
    // The service logs what it rejects, and what is finished.
    Context.add(References.MinimumLogLevel, "None")
  )
  const workSince =
    (yield* Clock.currentTimeMillis) - streams.work.maxAgeMillis + expiryMarginMillis
  const firstWork = yield* log.firstSince("work", workSince)
  const lastWork = (yield* streamState(streams.work))?.lastSeq ?? 0
  const beforeWork = (firstWork ?? lastWork + 1) - 1
  const marks = new Map<number, Marks>()
  const state: State = {
    log,
    buckets: watch.buckets,
    followers: yield* startAll(marks).pipe(Effect.provide(services)),
    at: { projector: 0, tally: beforeWork },
    folded: { projector: 0, tally: 0 },
    rejected: { reasons: new Map(), readUpTo: 0 },
    taken: { marks, readUpTo: 0 },
    planned: { broadcasts: new Set(), readUpTo: beforeWork },
    ended: new Map()
  }
  const context = yield* Effect.context<Effect.Services<ReturnType<typeof goOn>>>()
  const run = <A>(
    effect: Effect.Effect<A, NatsUnavailable, Effect.Services<ReturnType<typeof goOn>>>
  ) => Effect.provide(effect, Context.merge(context, services))
  let expired: ReadonlyMap<ChannelToken, ChannelPushes> | undefined
  const fold: ReadingFold = {
    folded: disk,
    position: () => ({ ...state.folded }),
    goOn: run(
      Effect.gen(function* () {
        const logEnd = yield* goOn(state, batchMax)
        expired ??= yield* readExpired(state, logEnd)
      })
    ),
    goOnWatching: (watched, changed) =>
      Effect.acquireUseRelease(
        Effect.sync(() => watch.begin(watched, changed)),
        () => run(goOn(state, 1)),
        () => Effect.sync(watch.end)
      ),
    get expired() {
      return expired ?? new Map()
    },
    workSince
  }
  return fold
})

const startAll = (marks: ReadonlyMap<number, Marks>) =>
  Effect.all({ projector: startProjector(marks), tally: startTally(0) })

/** Folds both streams on, LOG first. Returns the end of LOG up to which it was folded. */
const goOn = Effect.fnUntraced(function* (state: State, together: number) {
  const { ended, log, planned, rejected } = state
  yield* readPlanned(state)
  yield* readFacts(state)
  const logEnd = yield* goOnIn(state, "projector", together, (stored) => {
    const reason = rejected.reasons.get(stored.seq)
    return Effect.succeed(reason === undefined ? stored : passedOver(stored, reason))
  })
  yield* goOnIn(state, "tally", together, (stored) => {
    const place = parseOfBroadcast(stored.subject)
    if (place === undefined) return Effect.succeed(stored)
    const { broadcast, channel } = place
    if (stored.message.type === "plan") planned.broadcasts.add(broadcast)
    if (planned.broadcasts.has(broadcast)) return Effect.succeed(stored)
    // Its plan has expired. What WORK still has of it is in its final counts.
    return Effect.gen(function* () {
      const isEnded =
        ended.get(broadcast) ??
        (yield* log.last("log", subjects.finished(channel, broadcast))) !== undefined
      ended.set(broadcast, isEnded)
      return isEnded ? undefined : stored
    })
  })
  return logEnd
})

/** Before WORK is folded: LOG may have the final counts of a broadcast that begins there. */
const readPlanned = Effect.fnUntraced(function* ({ log, planned }: State) {
  const upTo = (yield* streamState(streams.work))?.lastSeq ?? 0
  const bounds = { after: planned.readUpTo, upTo }
  yield* log.readOn("work", [filters.plans], bounds, ({ message, seq }) => {
    planned.readUpTo = seq
    if (message.type === "plan") planned.broadcasts.add(message.broadcast)
  })
})

/** Each filter by itself: with two, all of LOG would be read. */
const readFacts = Effect.fnUntraced(function* ({ log, rejected, taken }: State) {
  const upTo = (yield* streamState(streams.log))?.lastSeq ?? 0
  const since = ({ readUpTo }: { readonly readUpTo: number }) => ({ after: readUpTo, upTo })
  yield* log.readOn("log", [filters.rejected], since(rejected), ({ message, seq }) => {
    rejected.readUpTo = seq
    if (message.type === "command.rejected") rejected.reasons.set(message.command, message.reason)
  })
  yield* log.readOn("log", [filters.taken], since(taken), ({ message, seq }) => {
    taken.readUpTo = seq
    if (message.type === "subscription.taken") taken.marks.set(message.command, message.taken)
  })
})

/** `taken`: what to apply of a message. Returns the end of the stream when the reading began. */
const goOnIn = Effect.fnUntraced(function* (
  state: State,
  name: FollowerName,
  together: number,
  taken: (stored: Stored) => Effect.Effect<Stored | undefined, NatsUnavailable>
) {
  const { at, folded, log } = state
  const { filters, stream } = followers[name]
  const follower = state.followers[name]
  const upTo = (yield* streamState(streams[stream]))?.lastSeq ?? 0
  let batch: Array<Stored> = []
  const apply = Effect.suspend(() => {
    const full = batch
    batch = []
    if (full.length === 0) return Effect.void
    const stored = together === 1 ? follower.store(Number.POSITIVE_INFINITY) : Effect.void
    return Effect.andThen(follower.apply(full), stored)
  })
  const each = Effect.fnUntraced(function* (stored: Stored) {
    at[name] = stored.seq
    folded[name] = stored.seq
    const one = yield* taken(stored)
    if (one !== undefined) batch.push(one)
    if (batch.length >= together) yield* apply
  })
  yield* log.readOn(stream, filters, { after: at[name], upTo }, each)
  yield* apply
  yield* follower.store(Number.POSITIVE_INFINITY)
  return upTo
})

/**
 * The pushes of broadcasts whose plan was not folded: WORK has it no more. Sums are read first, to
 * the end of LOG. A sum that comes later lets final counts go that this reading may lack: `verify`
 * then sees that old messages were deleted.
 */
const readExpired = Effect.fnUntraced(function* ({ buckets, log, planned }: State, upTo: number) {
  const expired = new Map<ChannelToken, ChannelPushes>()
  const add = (channel: ChannelToken, more: (pushes: ChannelPushes) => ChannelPushes) =>
    Effect.map(buckets.get("channels", keys.channelRegistrations(channel)), (count) => {
      // The channel was forgotten since.
      if (count === undefined) return
      const before = expired.get(channel) ?? emptyPushes(count.value.since)
      const after = more(before)
      if (after !== before) expired.set(channel, after)
    })
  const sums = new Map<ChannelToken, ChannelSummed>()
  const all = { after: 0, upTo: Number.POSITIVE_INFINITY }
  yield* log.readOn("log", [filters.summed], all, (stored) => {
    const found = sumIn(stored)
    if (found !== undefined) sums.set(found.channel, found.sum)
  })
  yield* log.readOn("log", [filters.finished], { after: 0, upTo }, (stored) => {
    const final = finalIn(stored)
    if (final === undefined || planned.broadcasts.has(final.counts.broadcast)) return
    return add(final.channel, (pushes) => withFinal(pushes, sums.get(final.channel), final))
  })
  for (const [channel, sum] of sums) yield* add(channel, (pushes) => withSum(pushes, sum))
  return expired
})

/** LOG and WORK for one who may only read: they have no room, but for what they have already. */
const readOnly = (log: EventLog["Service"]): EventLog["Service"] => {
  const noRoom = new NatsUnavailable({
    operation: "append",
    reason: { _tag: "NoRoom", stream: streams.log.name },
    cause: new Error("a check appends nothing")
  })
  const append = () => Effect.fail(noRoom)
  return EventLog.of({
    ...log,
    append: append as EventLog["Service"]["append"],
    once: (stream, { subject }) =>
      Effect.flatMap(log.last(stream, subject), (found) =>
        found === undefined ? Effect.fail(noRoom) : Effect.void
      ),
    remove: () => Effect.void
  })
}

type Changed = Parameters<ReadingFold["goOnWatching"]>[1]

/** The buckets of the fold, and what becomes of some entries while somebody watches. */
const makeWatch = ({ buckets, entry: entryOf }: DiskBuckets) => {
  const nameOf = (bucket: string, key: string | number) => `${bucket} ${key}`
  let watched = new Map<string, EntryName>()
  /** By bucket and revision. */
  let present = new Map<string, EntryName>()
  let changed: Changed | undefined
  const put = (bucket: BucketName, key: string, text: string, revision: number): void => {
    const entry = watched.get(nameOf(bucket, key))
    if (entry === undefined) return
    present.set(nameOf(bucket, revision), entry)
    changed?.(entry, text)
  }
  const putText: Buckets["Service"]["putText"] = (bucket, key, text, revision) =>
    Effect.map(buckets.putText(bucket, key, text, revision), (next) => {
      put(bucket, key, text, next)
      return next
    })
  const remove = (bucket: BucketName, revision: number) =>
    Effect.map(buckets.remove(bucket, revision), () => {
      const entry = present.get(nameOf(bucket, revision))
      if (entry !== undefined) changed?.(entry, undefined)
    })
  return {
    buckets: Buckets.of({
      ...buckets,
      putText,
      put: (bucket, key, value, revision) => putText(bucket, key, JSON.stringify(value), revision),
      remove
    }),
    begin: (names: ReadonlyArray<EntryName>, onChange: Changed): void => {
      watched = new Map(names.map((name) => [nameOf(name.bucket, name.key), name]))
      present = new Map()
      for (const name of names) {
        const found = entryOf(name.bucket, name.key)
        if (found !== undefined) present.set(nameOf(name.bucket, found.revision), name)
      }
      changed = onChange
    },
    end: (): void => {
      watched = new Map()
      present = new Map()
      changed = undefined
    }
  }
}
