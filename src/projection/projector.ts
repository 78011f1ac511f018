// LOG -> subscriptions, registrations, channels, permissions, drafts. The projector applies the
// commands of LOG in order and announces the last sequence that it applied.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import type { Marks } from "#domain/subscription/command.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { Nats } from "#nats/connection/connection.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Facts, makeFacts } from "#nats/follower/facts.ts"
import { type Follower, Followers } from "#nats/follower/follower.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { leaderOf } from "#nats/stream/info.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { type BucketName, bucketStream } from "#streams/buckets.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { commandRejected } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { deleteMessages, findSuperseded } from "./drafts.ts"
import { completeErasures, findErasures, forgetErased } from "./erase.ts"
import { block, type Fact, fold } from "./fold.ts"
import { findUnused, forget, makeForgetEnded } from "./forget.ts"
import { load } from "./load.ts"
import { completeMoves } from "./owners.ts"
import { floorOf, makeSets, revisionsOf, type Sets, shortOf, unstoredSince, write } from "./sets.ts"
import { cut, type Step, stepOf } from "./step.ts"
import { trimHistory } from "./trim.ts"

/** Facts recorded at once: one after the other, many of them would delay all other writes. */
const recordConcurrency = 64
/** After this time of applying steps, other fibers run. */
const turnMillis = 10

interface Due {
  readonly step: Step
  readonly fact: Fact
  /** Allows the write of the value. */
  readonly unblock: () => void
}

const foldAll = Effect.fnUntraced(function* (sets: Sets, steps: ReadonlyArray<Step>) {
  const due: Array<Due> = []
  let began = performance.now()
  for (const step of steps) {
    const fact = fold(sets, step)
    if (fact !== undefined) due.push({ step, fact, unblock: block(sets, step) })
    if (performance.now() - began < turnMillis) continue
    yield* Effect.sleep(0)
    began = performance.now()
  }
  return due
})

interface Projector {
  readonly sets: Sets
  readonly facts: Facts
  readonly buckets: Buckets["Service"]
  readonly forgetEnded: (saved: number) => Effect.Effect<void, NatsUnavailable>
  readonly watermark: Watermark["Service"]
  readonly warn: ReturnType<typeof makeRateLimitedLog>
  /** Sequence of the last message that was applied. */
  applied: number
  /** Sequence of the last command that was rejected, or a later one. */
  refused: number
  /** Buckets that have no room for some change, as announced last. */
  short: ReadonlyArray<string>
}

/** `marks`: of a rebuild (see `Sets`). */
const make = Effect.fnUntraced(function* (
  from: number,
  foldedUpTo: number,
  marks?: ReadonlyMap<number, Marks>
) {
  const sets = yield* makeSets(from, foldedUpTo, marks)
  const { isLive } = sets
  const facts = yield* makeFacts
  const projector: Projector = {
    sets,
    facts,
    buckets: yield* Buckets,
    forgetEnded: isLive ? yield* makeForgetEnded(sets) : () => Effect.void,
    watermark: yield* Watermark,
    warn: makeRateLimitedLog("commands in LOG were rejected"),
    applied: from,
    refused: foldedUpTo,
    short: []
  }
  yield* announce(projector)
  const follower: Follower = {
    from,
    apply: (batch) => apply(projector, batch),
    store: (saved) => store(projector, saved),
    unstoredSince: () => Math.min(unstoredSince(sets), facts.waitingSince()),
    revisions: () => revisionsOf(sets)
  }
  return { follower, sets }
})

/**
 * The projector of a rebuild, which has the buckets to itself, all of them empty at first. `marks`:
 * the facts `subscription.taken` of LOG.
 */
export const start = (marks: ReadonlyMap<number, Marks>) =>
  Effect.map(make(0, 0, marks), ({ follower }) => follower)

/** The projector of a service, which also forgets what earlier ones did not. */
const startLive = Effect.fnUntraced(function* (from: number) {
  const foldedUpTo = (yield* streamState(streams.log))?.lastSeq ?? 0
  const { retract } = yield* Watermark
  yield* Effect.addFinalizer(() => retract)
  const { follower, sets } = yield* make(from, foldedUpTo)
  yield* lookFor({
    what: "unused channels",
    bucket: "channels",
    look: findUnused(sets),
    isLeft: () => sets.areMoreUnused && sets.unused.size === 0
  })
  yield* lookFor({
    what: "messages of drafts, and erasures,",
    bucket: "drafts",
    look: Effect.andThen(findSuperseded(sets), findErasures(sets)),
    isLeft: (sinceMillis) =>
      (sets.areMoreDeletions && sinceMillis >= deletedAgainMillis) ||
      (sets.areMoreErasures && sinceMillis >= failedMillis)
  })
  yield* Effect.forkScoped(deleteMessages(sets))
  yield* Effect.forkScoped(completeErasures(sets))
  yield* Effect.forkScoped(trimHistory(sets))
  return follower
})

/** While NATS does not permit to delete messages, each attempt takes 5 s to fail. */
const deletedAgainMillis = 60 * 60_000

/** Between two questions whether the last look left something. */
const leftMillis = 1_000
/** Between two questions who leads the bucket: a request to NATS each. */
const leaderMillis = 10_000
/** After a look that failed. */
const failedMillis = 60_000

/** Entries that earlier terms or a killed nats-server left. A look reads the bucket. */
interface Left<R> {
  readonly what: string
  readonly bucket: BucketName
  readonly look: Effect.Effect<void, NatsUnavailable, R>
  /** Whether the last look, so long ago, left something. */
  readonly isLeft: (sinceMillis: number) => boolean
}

/**
 * Looks when the term begins, and from then on only for a reason: the last look failed or left
 * something, or another run of nats-server leads the bucket, which may have brought entries back.
 */
const lookFor = <R>({ bucket, isLeft, look, what }: Left<R>) => {
  const leader = Effect.flatMap(Nats, (nats) => leaderOf(nats, bucketStream(bucket)))
  const again = Effect.fnUntraced(function* (before: string, hasFailed: boolean) {
    const began = yield* monotonicMillis
    let askedAt = began
    while (true) {
      yield* nextMultiple(leftMillis)
      const now = yield* monotonicMillis
      if ((hasFailed && now >= began + failedMillis) || isLeft(now - began)) return
      if (now < askedAt + leaderMillis) continue
      askedAt = now
      if ((yield* Effect.orElseSucceed(leader, () => before)) !== before) return
    }
  })
  return Effect.gen(function* () {
    const before = yield* Effect.orElseSucceed(leader, () => "")
    const looked = yield* Effect.result(look)
    const hasFailed = looked._tag === "Failure"
    if (hasFailed) yield* Effect.logWarning(`${what} were not looked for`, looked.failure)
    yield* again(before, hasFailed)
  }).pipe(Effect.forever, Effect.forkScoped)
}

const announce = (projector: Projector) =>
  Effect.suspend(() => {
    const { applied, refused, sets, watermark } = projector
    projector.short = shortOf(sets)
    const { short } = projector
    return watermark.announce({ log: applied, floor: floorOf(sets), short, refused })
  })

/** Records a fact about a command. The value is not written before LOG has room for that. */
const record = Effect.fnUntraced(function* (projector: Projector, { fact, step, unblock }: Due) {
  const { facts, warn } = projector
  const { seq, subject } = step.stored
  const about = { command: seq, subject, at: yield* Clock.currentTimeMillis }
  const message =
    "reason" in fact
      ? ({
          subject: subjects.rejected(seq),
          type: "command.rejected",
          body: { ...about, reason: fact.reason }
        } as const)
      : ({
          subject: subjects.taken(seq),
          type: "subscription.taken",
          body: { ...about, taken: fact.marks }
        } as const)
  if ("reason" in fact) projector.refused = Math.max(projector.refused, seq)
  if (yield* facts.record({ message, seq, stored: unblock })) unblock()
  if (!("reason" in fact)) return
  commandRejected("projector")
  yield* warn({ seq, reason: fact.reason })
})

const applyPart = Effect.fnUntraced(function* (projector: Projector, steps: ReadonlyArray<Step>) {
  const { sets } = projector
  const due = yield* foldAll(sets, steps)
  // Record facts first: a written list does not say whether a command was applied or rejected.
  yield* Effect.forEach(due, (each) => record(projector, each), {
    concurrency: recordConcurrency,
    discard: true
  })
  yield* write(sets, "flush")
  if (sets.isLive) yield* completeMoves(sets)
})

const apply = Effect.fnUntraced(function* (
  projector: Projector,
  batch: ReadonlyArray<Stored>
): Effect.fn.Return<void, NatsUnavailable> {
  const { facts, sets } = projector
  for (const part of cut(batch.map(stepOf))) {
    for (let rest = part; rest.length > 0; ) {
      const loaded = yield* load(sets, facts, rest)
      yield* applyPart(projector, rest.slice(0, loaded))
      rest = rest.slice(loaded)
    }
  }
  projector.applied = batch.at(-1)!.seq
  yield* announce(projector)
})

const storeRest = (projector: Projector) =>
  Effect.gen(function* () {
    const { facts, sets, short } = projector
    const isWaiting = sets.moves.size > 0 || facts.waitingSince() < Number.POSITIVE_INFINITY
    if (short.length === 0 && !isWaiting) return
    yield* facts.retry
    yield* write(sets, "retry")
    yield* completeMoves(sets)
    yield* announce(projector)
  })

const store = (projector: Projector, saved: number) =>
  storeRest(projector).pipe(
    Effect.andThen(forget(projector.sets, projector.buckets, saved)),
    Effect.andThen(forgetErased(projector.sets)),
    Effect.andThen(projector.forgetEnded(saved))
  )

/** Runs the projector until the scope of the layer closes. */
export const projectionLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("projector", startLive))
  })
)
