// Followers: apply a stream in order from a checkpoint, in one process at a time. The header of
// streams/followers.ts says why a durable consumer cannot do this.

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import { bucketStream } from "#streams/buckets.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { storedForm, streams } from "#streams/index.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { runForever } from "../connection/again.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import type { WorkTally } from "../connection/processes.ts"
import { Processes } from "../connection/processes.ts"
import { Buckets } from "../kv/bucket.ts"
import type { Mark, Revisions } from "../kv/values.ts"
import { deathsMax, gaveUp } from "../stream/consumer.ts"
import { formKey, infoOf, makingKey } from "../stream/info.ts"
import { refusalOf } from "../stream/later.ts"
import { laterTypeOf, passedOver, type Stored } from "../stream/stored.ts"
import { type Checkpoint, followerFaults, readCheckpoint, saveCheckpoint } from "./checkpoint.ts"
import { arrival, batchMax, openInbox, takeBatch } from "./inbox.ts"
import { acquire, newPace, release, renew } from "./lease.ts"

const checkpointMillis = 1_000

export interface Follower {
  /** Sequence of the last message that an earlier term applied. */
  readonly from: number
  readonly apply: (batch: ReadonlyArray<Stored>) => Effect.Effect<void, NatsUnavailable>
  /**
   * Stores the changes of `apply` that are not stored, as far as there is room. Called every second
   * before the checkpoint is saved. `saved` is the sequence of the last checkpoint: no later term
   * applies that message or an earlier one.
   */
  readonly store: (saved: number) => Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message with a change that is not stored, or Infinity. */
  readonly unstoredSince: () => number
  /** Revisions of the buckets that it writes, but for the bucket of its checkpoint. */
  readonly revisions: () => Revisions
}

/** Makes a follower with empty caches. `checkpoint` is the `from` of the follower. */
type Start<R> = (checkpoint: number) => Effect.Effect<Follower, NatsUnavailable, R>

export class Followers extends Context.Service<
  Followers,
  {
    /**
     * Acquires the follower's lease and applies its stream in order until the lease is lost, again
     * and again. Calls `start` each time. A batch that fails ends the term. The next one begins at
     * the checkpoint: applying a message twice changes nothing.
     */
    readonly follow: <R>(name: FollowerName, start: Start<R>) => Effect.Effect<never, never, R>
    /** Whether this process has the follower's lease. */
    readonly runs: (name: FollowerName) => boolean
    /**
     * Runs `work` while this process has the follower's lease, again and again. `secondsMin`: the
     * lease is never shorter; for work that takes the processor for itself.
     */
    readonly whileLeased: <R>(
      name: FollowerName,
      work: Effect.Effect<never, NatsUnavailable, R>,
      secondsMin?: number
    ) => Effect.Effect<never, never, R>
  }
>()("bellcast/nats/Followers") {
  static readonly layer = Layer.effect(
    Followers,
    Effect.gen(function* () {
      const nats = yield* Nats
      const buckets = yield* Buckets
      const holder = (yield* Random.nextInt).toString(36)
      const { tally } = yield* Processes
      const context: RunContext = { nats, buckets, tally, holder, running: new Set() }
      return Followers.of({
        follow: (name, start) =>
          forever(
            name,
            standBack(leased(context, name, run(context, name, start, noDeaths(name))))
          ),
        whileLeased: (name, work, secondsMin) =>
          forever(name, leased(context, name, work, secondsMin)),
        runs: (name) => context.running.has(name)
      })
    })
  )
}

interface RunContext {
  readonly nats: Nats["Service"]
  readonly buckets: Buckets["Service"]
  readonly tally: WorkTally
  /** Identifies this process as the holder of a lease. */
  readonly holder: string
  /** The followers whose lease this process has. */
  readonly running: Set<FollowerName>
}

/** While NATS is unavailable, a follower fails four times a second. */
const forever = <E, R>(name: FollowerName, run: Effect.Effect<never, E, R>) =>
  runForever(
    run,
    "250 millis",
    makeRateLimitedLog(`${name} stopped and starts again`, Effect.logError)
  )

/** Longer than another process takes to acquire a free lease. */
const standBackMillis = 2_000

/** After a message that only a later version reads: lets a process of that version follow. */
const standBack = <A, R>(term: Effect.Effect<A, NatsUnavailable, R>) =>
  Effect.tapError(term, ({ reason }) =>
    reason._tag === "LaterVersion" ? Effect.sleep(standBackMillis) : Effect.void
  )

/** Runs `work` while this process has the lease, until either fails. */
const leased = <R>(
  { buckets, holder, running }: RunContext,
  name: FollowerName,
  work: Effect.Effect<never, NatsUnavailable, R>,
  secondsMin?: number
) => {
  const pace = newPace(secondsMin)
  return Effect.gen(function* () {
    const lease = yield* acquire(buckets, name, holder, pace)
    running.add(name)
    yield* Effect.addFinalizer(() => {
      running.delete(name)
      return release(buckets, lease)
    })
    return yield* Effect.raceFirst(work, renew(buckets, lease))
  }).pipe(Effect.scoped)
}

/**
 * Runs the follower from its checkpoint until it fails. Fails at once if the stream is not the one
 * that the checkpoint was made from: `start` announces how far the buckets are.
 */
const run = <R>(context: RunContext, name: FollowerName, start: Start<R>, deaths: Deaths) =>
  Effect.gen(function* () {
    const { buckets, nats } = context
    // First: what follows may be of no form that this version reads.
    const [fault] = [
      ...(yield* formFaults(nats, name)),
      ...(yield* followerFaults(nats, buckets, name))
    ]
    if (fault !== undefined) return yield* unavailable(`follow ${name}`)(new Error(fault))
    const checkpoint = yield* readCheckpoint(buckets, name)
    const follower = yield* start(checkpoint.seq)
    return yield* applyAll(context, follower, checkpoint, deaths)
  }).pipe(Effect.scoped)

/**
 * Why a follower must not write to its buckets, in words: another version has made them again, or
 * is about to. Whoever does so has the lease meanwhile, so a look under the lease is enough.
 */
const formFaults = Effect.fnUntraced(function* (nats: Nats["Service"], name: FollowerName) {
  const own = storedForm.buckets
  const bucket = bucketStream(followers[name].checkpoint)
  const making = (yield* infoOf(nats, streams.log.name))?.config.metadata?.[makingKey]
  const form = (yield* infoOf(nats, bucket))?.config.metadata?.[formKey]
  if (making !== undefined) return [`the buckets are being made again, in form ${making}`]
  // Absent: the bucket is gone, which a read of it says.
  return form === undefined || form === own
    ? []
    : [`${bucket} is stored in form ${form}; this version writes form ${own}`]
})

/**
 * Messages that are passed over one after the other. If the next one fails, too, the fault is not
 * the messages': passing them over would reject all that was acknowledged.
 */
const passedOverMax = 3

/**
 * The deaths of a follower's runs in this process. A message on which each run dies would stop the
 * follower for ever, and with it every message behind.
 */
interface Deaths {
  /** Messages up to this one are applied one by one, so that the deadly one is known. */
  singlyUpTo: number
  /** By the sequence of the message. */
  readonly counts: Map<number, number>
  /** Sequences that were passed over since a later message was applied. */
  readonly inRow: Set<number>
  readonly warnPassedOver: ReturnType<typeof makeRateLimitedLog>
  readonly warnStuck: ReturnType<typeof makeRateLimitedLog>
}
const noDeaths = (name: FollowerName): Deaths => ({
  singlyUpTo: 0,
  counts: new Map(),
  inRow: new Set(),
  warnPassedOver: makeRateLimitedLog(
    `${name}: a message failed ${deathsMax} times and is passed over: report this defect`,
    Effect.logError
  ),
  warnStuck: makeRateLimitedLog(
    `${name}: ${passedOverMax} messages in a row were passed over and the next one fails, too: ` +
      "it waits until another version runs. Report this defect",
    Effect.logError
  )
})

const ifDies =
  (note: () => void) =>
  <E, R>(apply: Effect.Effect<void, E, R>) =>
    Effect.tapCause(apply, (cause) =>
      Effect.sync(() => {
        if (Cause.hasDies(cause)) note()
      })
    )

const applyBatch = Effect.fnUntraced(function* (
  follower: Follower,
  batch: ReadonlyArray<Stored>,
  deaths: Deaths
) {
  if (batch[0]!.seq <= deaths.singlyUpTo)
    return yield* Effect.forEach(batch, (each) => applyOne(follower, each, deaths), {
      discard: true
    })
  const { seq } = batch.at(-1)!
  yield* Effect.suspend(() => follower.apply(batch)).pipe(
    ifDies(() => {
      deaths.singlyUpTo = seq
    })
  )
  endRow(deaths, seq)
})

/** A message that was applied ends the row. The next term applies earlier messages again. */
const endRow = ({ inRow }: Deaths, seq: number): void => {
  if (inRow.size > 0 && seq > Math.max(...inRow)) inRow.clear()
}

/** Where the follower dies on the malformed form, too, the term ends. */
const applyOne = Effect.fnUntraced(function* (follower: Follower, stored: Stored, deaths: Deaths) {
  const { counts, inRow, warnPassedOver, warnStuck } = deaths
  const { seq, subject } = stored
  const count = counts.get(seq) ?? 0
  const isStuck = count >= deathsMax && inRow.size >= passedOverMax && !inRow.has(seq)
  if (isStuck) yield* warnStuck({ seq, subject })
  if (count < deathsMax || isStuck) {
    yield* Effect.suspend(() => follower.apply([stored])).pipe(
      ifDies(() => void counts.set(seq, count + 1))
    )
    return endRow(deaths, seq)
  }
  yield* follower.apply([passedOver(stored, gaveUp)])
  inRow.add(seq)
  yield* warnPassedOver({ seq, subject })
})

type Last = Pick<Mark, "seq" | "at"> | undefined

/** The later of two messages: a term applies messages again that an earlier one applied. */
const latest = (last: Last, { at, seq }: Stored): Last =>
  last !== undefined && last.seq >= seq ? last : { seq, at }

/** Up to where a term has applied its stream. */
interface Applied {
  seq: number
  last: Last
}

/**
 * Applies what waits, up to a message that only a later version reads. Returns the error of reading
 * that one: the term ends with it, once what is before is stored.
 */
const applyWaiting = Effect.fnUntraced(function* (
  tally: WorkTally,
  name: FollowerName,
  follower: Follower,
  deaths: Deaths,
  waiting: ReadonlyArray<Stored>,
  applied: Applied
) {
  const later = waiting.findIndex((each) => laterTypeOf(each) !== undefined)
  const batch = later < 0 ? waiting : waiting.slice(0, later)
  const last = batch.at(-1)
  if (last !== undefined) {
    yield* applyBatch(follower, batch, deaths)
    tally.end(name)
    applied.seq = last.seq
    applied.last = latest(applied.last, last)
  }
  return later < 0 ? undefined : refusalOf(tally, followers[name].stream, waiting[later]!)
})

const applyAll = Effect.fnUntraced(function* (
  { buckets, nats, tally }: RunContext,
  follower: Follower,
  checkpoint: Checkpoint,
  deaths: Deaths
) {
  const { name } = checkpoint
  const { pauseMillis } = followers[name]
  const inbox = yield* openInbox(nats.js, name, followers[name], follower.from)
  const applied: Applied = { seq: follower.from, last: checkpoint.mark }
  /** The second of the last checkpoint, by the monotonic clock. */
  let saved = -1
  let refusal: NatsUnavailable | undefined
  while (true) {
    // Without new messages the checkpoint is saved, too.
    yield* Effect.raceFirst(arrival(inbox), nextMultiple(checkpointMillis))
    if (inbox.waiting.length > 0) {
      refusal = yield* applyWaiting(tally, name, follower, deaths, takeBatch(inbox), applied)
      if (pauseMillis > 0 && inbox.waiting.length < batchMax) yield* Effect.sleep(pauseMillis)
    } else if (inbox.ended) {
      return yield* unavailable(`follow ${name}`)(new Error("the stream ended"))
    }
    const second = Math.floor((yield* monotonicMillis) / checkpointMillis)
    if (second === saved && refusal === undefined) continue
    saved = second
    yield* follower.store(checkpoint.seq)
    yield* saveCheckpoint(buckets, checkpoint, {
      // The next term applies again what is not stored.
      stored: Math.min(applied.seq, follower.unstoredSince() - 1),
      mark: applied.last && { ...applied.last, revisions: follower.revisions() }
    })
    if (refusal !== undefined) return yield* refusal
  }
})
