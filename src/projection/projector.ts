// LOG -> subscriptions, registrations, channels, permissions: folds commands in order and says how far it is.
import { Clock, Effect, Layer } from "effect"
import { streamState } from "#nats/admin/maintenance.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Facts, makeFacts } from "#nats/follower/facts.ts"
import { Followers } from "#nats/follower/follower.ts"
import { Watermark } from "#nats/follower/watermark.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { backfill, counted } from "./backfill.ts"
import { fold, hold } from "./fold.ts"
import { floorOf, load, makeSets, type Sets, shortOf, unstoredSince, write } from "./sets.ts"
import { cut, type Step, stepOf } from "./step.ts"

/** Facts written at once; without them a flood of garbage would hold up everybody's writes for a round trip each. */
const rejectConcurrency = 64
/** The longest that steps are folded before others in the process have a turn. */
const turnMillis = 10

interface Rejected {
  readonly step: Step
  readonly reason: string
}

const foldAll = Effect.fnUntraced(function* (sets: Sets, steps: ReadonlyArray<Step>) {
  const rejected: Array<Rejected> = []
  let began = performance.now()
  for (const step of steps) {
    const reason = fold(sets, step)
    if (reason !== undefined) rejected.push({ step, reason })
    if (performance.now() - began < turnMillis) continue
    yield* Effect.sleep(0)
    began = performance.now()
  }
  return rejected
})

/** Records why a command was refused. Until LOG has room for that, its value is not written. */
const reject = Effect.fnUntraced(function* (sets: Sets, facts: Facts, { reason, step }: Rejected) {
  const { seq, subject } = step.stored
  const body = { command: seq, subject, reason, at: yield* Clock.currentTimeMillis }
  const message = { subject: subjects.rejected(seq), type: "command.rejected/1", body } as const
  const stored = hold(sets, step)
  if (yield* facts.record({ message, seq, stored })) stored()
})

export const start = Effect.fnUntraced(function* (from: number) {
  const watermark = yield* Watermark
  const sets = yield* makeSets((yield* streamState(streams.log))?.lastSeq ?? 0)
  const facts = yield* makeFacts
  const warn = makeRateLimitedLog("commands in the log were refused")
  const isCounted = yield* backfill(sets, from)
  let applied = from
  let short: ReadonlyArray<string> = []

  const announce = Effect.suspend(() => {
    short = shortOf(sets)
    return watermark.announce({ log: applied, floor: floorOf(sets), short })
  })

  const applyPart = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
    const rejected = yield* foldAll(sets, steps)
    // The facts go first: once a list is written, a command that did not fit cannot be told from one that was folded.
    yield* Effect.forEach(
      rejected,
      (each) =>
        Effect.andThen(
          reject(sets, facts, each),
          warn({ seq: each.step.stored.seq, reason: each.reason })
        ),
      { concurrency: rejectConcurrency, discard: true }
    )
    yield* write(sets, "flush")
  })

  const apply = Effect.fnUntraced(function* (
    batch: ReadonlyArray<Stored>
  ): Effect.fn.Return<void, NatsUnavailable> {
    for (const part of cut(batch.map(stepOf))) {
      for (let rest = part; rest.length > 0; ) {
        const loaded = yield* load(sets, facts, rest)
        yield* applyPart(rest.slice(0, loaded))
        rest = rest.slice(loaded)
      }
    }
    applied = batch.at(-1)!.seq
    yield* announce
  })

  const store = Effect.gen(function* () {
    if (short.length === 0 && facts.waitingSince() === Number.POSITIVE_INFINITY) return
    yield* facts.retry
    yield* write(sets, "retry")
    yield* announce
  })

  yield* announce
  return {
    from,
    notes: isCounted ? counted : {},
    apply,
    store,
    unstoredSince: () => Math.min(unstoredSince(sets), facts.waitingSince())
  }
})

/** Runs the projector for as long as the layer lives. */
export const projectionLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const followers = yield* Followers
    yield* Effect.forkScoped(followers.follow("projector", start))
  })
)
