// LOG -> subscriptions, registrations, channels, permissions. The projector applies the commands of
// LOG in order and announces the last sequence that it applied.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { streamState } from "#nats/admin/maintenance.ts"
import type { Nats } from "#nats/connection/connection.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Facts, makeFacts } from "#nats/follower/facts.ts"
import { type Follower, Followers } from "#nats/follower/follower.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { commandRejected } from "#telemetry/nats-metrics.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { block, fold } from "./fold.ts"
import { findEnded, findUnused, forget } from "./forget.ts"
import { load } from "./load.ts"
import { completeMoves } from "./owners.ts"
import { floorOf, makeSets, revisionsOf, type Sets, shortOf, unstoredSince, write } from "./sets.ts"
import { cut, type Step, stepOf } from "./step.ts"

/** Rejections recorded at once: one after the other, many of them would delay all other writes. */
const rejectConcurrency = 64
/** After this time of applying steps, other fibers run. */
const turnMillis = 10

interface Rejected {
  readonly step: Step
  readonly reason: string
  /** Allows the write of the value. */
  readonly unblock: () => void
}

const foldAll = Effect.fnUntraced(function* (sets: Sets, steps: ReadonlyArray<Step>) {
  const rejected: Array<Rejected> = []
  let began = performance.now()
  for (const step of steps) {
    const reason = fold(sets, step)
    if (reason !== undefined) rejected.push({ step, reason, unblock: block(sets, step) })
    if (performance.now() - began < turnMillis) continue
    yield* Effect.sleep(0)
    began = performance.now()
  }
  return rejected
})

interface Projector {
  readonly sets: Sets
  readonly facts: Facts
  readonly buckets: Buckets["Service"]
  readonly watermark: Watermark["Service"]
  readonly warn: ReturnType<typeof makeRateLimitedLog>
  /** Sequence of the last message that was applied. */
  applied: number
  /** Sequence of the last command that was rejected, or a later one. */
  refused: number
  /** Buckets that have no room for some change, as announced last. */
  short: ReadonlyArray<string>
}

const make = Effect.fnUntraced(function* (from: number, foldedUpTo: number, isLive: boolean) {
  const sets = yield* makeSets(from, foldedUpTo, isLive)
  const facts = yield* makeFacts
  const projector: Projector = {
    sets,
    facts,
    buckets: yield* Buckets,
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

/** The projector of a rebuild, which has the buckets to itself, all of them empty and in memory. */
export const start = Effect.map(make(0, 0, false), ({ follower }) => follower)

/**
 * The projector of a service, which also forgets what earlier ones did not. It looks again each
 * hour: a killed nats-server brings entries back, and this process may not notice.
 */
const startLive = Effect.fnUntraced(function* (from: number) {
  const foldedUpTo = (yield* streamState(streams.log))?.lastSeq ?? 0
  const { retract } = yield* Watermark
  yield* Effect.addFinalizer(() => retract)
  const { follower, sets } = yield* make(from, foldedUpTo, true)
  const lookFor = (what: string, look: Effect.Effect<boolean, NatsUnavailable, Nats>) =>
    look.pipe(
      Effect.catch((err) => Effect.as(Effect.logWarning(`${what} were not looked for`, err), true)),
      Effect.flatMap((foundAll) => Effect.sleep(foundAll ? "1 hour" : "1 minute")),
      Effect.forever,
      Effect.forkScoped
    )
  yield* lookFor("unused channels", findUnused(sets))
  yield* lookFor("ended registrations", findEnded(sets))
  return follower
})

const announce = (projector: Projector) =>
  Effect.suspend(() => {
    const { applied, refused, sets, watermark } = projector
    projector.short = shortOf(sets)
    const { short } = projector
    return watermark.announce({ log: applied, floor: floorOf(sets), short, refused })
  })

/** Records why a command was rejected. The value is not written before LOG has room for that. */
const reject = Effect.fnUntraced(function* (
  projector: Projector,
  { reason, step, unblock }: Rejected
) {
  const { facts, warn } = projector
  const { seq, subject } = step.stored
  projector.refused = Math.max(projector.refused, seq)
  const body = { command: seq, subject, reason, at: yield* Clock.currentTimeMillis }
  const message = { subject: subjects.rejected(seq), type: "command.rejected/1", body } as const
  if (yield* facts.record({ message, seq, stored: unblock })) unblock()
  commandRejected("projector")
  yield* warn({ seq, reason })
})

const applyPart = Effect.fnUntraced(function* (projector: Projector, steps: ReadonlyArray<Step>) {
  const { sets } = projector
  const rejected = yield* foldAll(sets, steps)
  // Record rejections first: a written list does not say whether a command was applied or rejected.
  yield* Effect.forEach(rejected, (each) => reject(projector, each), {
    concurrency: rejectConcurrency,
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
  Effect.andThen(storeRest(projector), forget(projector.sets, projector.buckets, saved))

/** Runs the projector until the scope of the layer closes. */
export const projectionLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("projector", startLive))
  })
)
