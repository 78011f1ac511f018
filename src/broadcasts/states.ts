// Follows the changes of the states of broadcasts in LOG. Planner and workers read the present
// state here, without a request for each job or push, and gateways how many broadcasts wait. The
// command line reads those that wait once (`scheduledBroadcasts`).
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import { laterStart, scheduledMax, scheduledOfOneMax } from "#domain/broadcast-start.ts"
import {
  changeIn,
  type Order,
  orderOf,
  type StateChange,
  scheduleAfter,
  stateAfter
} from "#domain/broadcast-state.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { millisOf } from "#domain/timestamp.ts"
import { runForever } from "#nats/connection/again.ts"
import { Nats } from "#nats/connection/connection.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"
import { Processes } from "#nats/connection/processes.ts"
import { arrival, openInbox, takeBatch } from "#nats/follower/inbox.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { consumerInfo } from "#nats/stream/info.ts"
import { refusalOf } from "#nats/stream/later.ts"
import { copyOf, laterTypeOf, type Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { filters, parseState } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { type Origin, originIn, originOf, standingsOf } from "./state.ts"

/**
 * The broadcasts that wait are read once in this time anyway. A reading takes milliseconds where
 * 100,000 wait, so one that starts later does not cause a reading of its own.
 */
export const soonMillis = 1_000
/** Broadcasts that are read at once: a message has at most 32 KiB. */
const readMax = 100

export class States extends Context.Service<
  States,
  {
    /** The present order for a job. */
    readonly orderOf: (job: Pick<BroadcastRef, "broadcast" | "run">) => Order
    /** Fails while the last change of a broadcast is one that only a later version reads. */
    readonly demandRead: (broadcast: number) => Effect.Effect<void, NatsUnavailable>
    /** The present run of a broadcast. */
    readonly runOf: (broadcast: number) => number
    /** Returns when every change that LOG had at the start of this process is known. */
    readonly known: Effect.Effect<void>
    /** The broadcasts that wait for their start. */
    readonly scheduled: Effect.Effect<ReadonlyArray<Scheduled>>
    /**
     * Whether a bound on broadcasts that wait for their start is reached: 10,000 in all, or 5,000
     * of this publisher. This process may not know of the last ones yet.
     */
    readonly isFull: (publisher: string) => boolean
    /** Returns when one starts within `soonMillis` that the last reading did not have. */
    readonly scheduling: Effect.Effect<void>
  }
>()("bellcast/broadcasts/States") {
  static readonly layer = Layer.effect(
    States,
    Effect.gen(function* () {
      const { tally } = yield* Processes
      const index: Index = {
        seq: 0,
        changes: new Map(),
        unread: new Map(),
        scheduled: new Map(),
        added: Latch.makeUnsafe()
      }
      const { changes, scheduled } = index
      const latch = Latch.makeUnsafe()
      const warn = makeRateLimitedLog("states of broadcasts cannot be followed", Effect.logError)
      yield* Effect.forkScoped(runForever(follow(index, latch), "250 millis", warn))
      return States.of({
        orderOf: ({ broadcast, run }) => orderOf(changes.get(broadcast)?.change, run),
        demandRead: (broadcast) => {
          const unread = index.unread.get(broadcast)
          return (unread && refusalOf(tally, "log", unread)) ?? Effect.void
        },
        runOf: (broadcast) => changes.get(broadcast)?.change.run ?? 0,
        known: latch.await,
        scheduled: Effect.sync(() => {
          index.added.closeUnsafe()
          return [...scheduled.values()]
        }),
        isFull: (publisher) =>
          scheduled.size >= scheduledMax || countOf(scheduled, publisher) >= scheduledOfOneMax,
        scheduling: index.added.await
      })
    })
  )
}

interface Stamped {
  readonly change: Pick<StateChange, "type" | "run">
  readonly at: number
}

/** A broadcast that waits for its start. */
export interface Scheduled {
  readonly broadcast: number
  readonly channel: string
  readonly schedule: NonNullable<StateChange["schedule"]>
  /** Milliseconds since the epoch. */
  readonly startsAt: number
  /** Sequence of its last change. */
  readonly seq: number
  readonly publisher: string
}

const countOf = (scheduled: Index["scheduled"], publisher: string): number => {
  let count = 0
  for (const each of scheduled.values()) if (each.publisher === publisher) count += 1
  return count
}

interface Index {
  /** Sequence of the last message that was applied. */
  seq: number
  /**
   * The last change of each broadcast that was paused or cancelled, as long as WORK has jobs of it.
   * The oldest are first.
   */
  readonly changes: Map<number, Stamped>
  readonly scheduled: Map<number, Scheduled>
  /** Last changes that only a later version reads. */
  readonly unread: Map<number, Stored>
  /** Opens when a broadcast starts soon that did not before. */
  readonly added: Latch.Latch
}

const addSchedule = (
  { added, scheduled }: Index,
  change: StateChange,
  stored: Stored,
  now: number
): void => {
  const { broadcast, by, channel } = change
  const schedule = scheduleAfter(change, stored)
  if (stateAfter(change) !== "scheduled" || schedule === undefined)
    return void scheduled.delete(broadcast)
  const startsAt = millisOf(schedule.at) ?? stored.at
  const { seq } = stored
  // The planner's change is by the publisher; one that came before it counts for who made it.
  const publisher = scheduled.get(broadcast)?.publisher ?? by
  scheduled.set(broadcast, { broadcast, channel, schedule, startsAt, seq, publisher })
  if (startsAt <= now + soonMillis) added.openUnsafe()
}

const add = (index: Index, stored: Stored, now: number): void => {
  const { changes } = index
  const { at, message, seq } = stored
  // A second reading begins with what was applied before.
  if (seq <= index.seq) return
  index.seq = seq
  const broadcast = parseState(stored.subject) ?? 0
  if (laterTypeOf(stored) !== undefined) return void index.unread.set(broadcast, copyOf(stored))
  index.unread.delete(broadcast)
  const change = changeIn(message)
  if (change === undefined) return
  const { run, type } = change
  changes.delete(broadcast)
  // Without an entry a job of the first run has the same order: its pushes are sent.
  if (run > 0 || orderOf({ run, type }) !== "send")
    changes.set(broadcast, { change: { run, type }, at })
  addSchedule(index, change, stored, now)
  for (const [oldest, then] of changes) {
    if (then.at >= now - streams.work.maxAgeMillis) break
    changes.delete(oldest)
  }
}

/** Reads all changes, then each that comes. Fails when some may be missing. */
const follow = Effect.fnUntraced(function* (index: Index, latch: Latch.Latch) {
  const { js } = yield* Nats
  let from = 0
  const began = yield* Clock.currentTimeMillis
  yield* (yield* EventLog).replay(
    "log",
    [filters.states],
    (stored) => {
      from = stored.seq
      add(index, stored, began)
    },
    { withLater: true }
  )
  yield* latch.open
  const followed = { stream: "log", filters: [filters.states] } as const
  const inbox = yield* openInbox(js, "states of broadcasts", followed, from)
  while (!inbox.ended) {
    yield* arrival(inbox)
    const now = yield* Clock.currentTimeMillis
    while (inbox.waiting.length > 0) for (const stored of takeBatch(inbox)) add(index, stored, now)
  }
  return yield* unavailable("follow states")(new Error("the stream ended"))
}, Effect.scoped)

/** Scheduled broadcasts that the planner may not have read: LOG may have no state of them yet. */
const unread = Effect.gen(function* () {
  const log = yield* EventLog
  const { consumers, name } = streams.log
  const info = yield* consumerInfo(yield* Nats, name, consumers.planner.name).pipe(
    Effect.mapError(unavailable("state of planner"))
  )
  const origins: Array<Origin> = []
  let from = (info?.ack_floor.stream_seq ?? 0) + 1
  while (true) {
    const found = yield* log.following("log", filters.broadcasts, { from, limit: readMax })
    const later = found.filter(({ at, header }) => laterStart(header, at) !== undefined)
    origins.push(...later.flatMap((stored) => originIn(stored) ?? []))
    if (found.length < readMax) break
    from = found.at(-1)!.seq + 1
  }
  const standings = yield* standingsOf(origins)
  return origins.filter((_, i) => standings[i]!.state === "scheduled")
})

/** Returns the broadcasts that wait for their start, the oldest first. */
export const scheduledBroadcasts = Effect.gen(function* () {
  // Read before the states, which a planner may append meanwhile: else one could be in neither.
  const found = new Map((yield* unread).map((origin) => [origin.stored.seq, origin]))
  const waiting = new Set<number>()
  yield* (yield* EventLog).replay("log", [filters.states], ({ message, subject }) => {
    const broadcast = parseState(subject)
    const change = changeIn(message)
    if (broadcast === undefined || change === undefined) return
    found.delete(broadcast)
    if (stateAfter(change) === "scheduled") waiting.add(broadcast)
    else waiting.delete(broadcast)
  })
  for (const origin of yield* Effect.forEach([...waiting], originOf, { concurrency: 16 }))
    if (origin !== undefined) found.set(origin.stored.seq, origin)
  return [...found.values()].sort((a, b) => a.stored.seq - b.stored.seq)
})
