// Followers: apply a stream in order from a checkpoint, in one process at a time. The header of
// streams/followers.ts says why a durable consumer cannot do this.
import type { JetStreamClient } from "@nats-io/jetstream"
import { Cause, Context, Effect, Layer, Random, Schedule } from "effect"
import { monotonicMillis } from "#clock/monotonic.ts"
import { type FollowerName, followers } from "#streams/followers.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { type NatsUnavailable, unavailable } from "../connection/errors.ts"
import { Buckets } from "../kv/bucket.ts"
import type { Stored } from "../stream/stored.ts"
import { type Checkpoint, type Notes, readCheckpoint, saveCheckpoint } from "./checkpoint.ts"
import { arrival, batchMax, openInbox, takeBatch } from "./inbox.ts"
import { acquire, release, renew } from "./lease.ts"

const checkpointMillis = 1_000
const again = Schedule.spaced("250 millis")

export interface Follower {
  /** Sequence of the last message that an earlier run applied. */
  readonly from: number
  readonly notes?: Notes
  readonly apply: (batch: ReadonlyArray<Stored>) => Effect.Effect<void, NatsUnavailable>
  /**
   * Stores the changes of `apply` that are not stored, as far as there is room. Called every second
   * before the checkpoint is saved.
   */
  readonly store: Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message with a change that is not stored, or Infinity. */
  readonly unstoredSince: () => number
}

/** Makes a follower with empty caches. `checkpoint` is the `from` of the follower. */
type Start<R> = (checkpoint: number) => Effect.Effect<Follower, NatsUnavailable, R>

export class Followers extends Context.Service<
  Followers,
  {
    /**
     * Acquires the follower's lease and applies its stream in order until the lease is lost, again
     * and again. Calls `start` each time. A batch that fails ends the run. The next run begins at
     * the checkpoint: applying a message twice changes nothing.
     */
    readonly follow: <R>(name: FollowerName, start: Start<R>) => Effect.Effect<never, never, R>
    /** Whether this process has the follower's lease. */
    readonly runs: (name: FollowerName) => boolean
  }
>()("bellcast/nats/Followers") {
  static readonly layer = Layer.effect(
    Followers,
    Effect.gen(function* () {
      const { js } = yield* Nats
      const buckets = yield* Buckets
      const holder = (yield* Random.nextInt).toString(36)
      const context: RunContext = { js, buckets, holder, running: new Set() }
      return Followers.of({
        follow: (name, start) => forever(name, runOnce(context, name, start)),
        runs: (name) => context.running.has(name)
      })
    })
  )
}

interface RunContext {
  readonly js: JetStreamClient
  readonly buckets: Buckets["Service"]
  /** Identifies this process as the holder of a lease. */
  readonly holder: string
  /** The followers whose lease this process has. */
  readonly running: Set<FollowerName>
}

const forever = <E, R>(name: FollowerName, run: Effect.Effect<never, E, R>) => {
  // While NATS is unavailable, a follower fails four times a second.
  const log = makeRateLimitedLog(`${name} stopped and starts again`, Effect.logError)
  return run.pipe(
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : log({ err: Cause.squash(cause) })
    ),
    Effect.repeat(again),
    Effect.andThen(Effect.never)
  )
}

/** Runs the follower from its checkpoint until it fails or the lease is lost. */
const runOnce = <R>(context: RunContext, name: FollowerName, start: Start<R>) =>
  Effect.gen(function* () {
    const { buckets, holder, running } = context
    const lease = yield* acquire(buckets, name, holder)
    running.add(name)
    yield* Effect.addFinalizer(() => {
      running.delete(name)
      return release(buckets, lease)
    })
    const checkpoint = yield* readCheckpoint(buckets, name)
    const work = Effect.gen(function* () {
      const follower = yield* start(checkpoint.seq)
      return yield* applyAll(context, follower, checkpoint)
    })
    return yield* Effect.raceFirst(work, renew(buckets, lease))
  }).pipe(Effect.scoped)

const applyAll = Effect.fnUntraced(function* (
  { buckets, js }: RunContext,
  follower: Follower,
  checkpoint: Checkpoint
) {
  const { name } = checkpoint
  const { pauseMillis } = followers[name]
  const inbox = yield* openInbox(js, name, follower.from)
  let applied = follower.from
  let savedAt = Number.NEGATIVE_INFINITY
  while (true) {
    // The time-out saves the checkpoint of a stream without new messages.
    yield* arrival(inbox).pipe(Effect.timeoutOption(checkpointMillis))
    if (inbox.waiting.length > 0) {
      const batch = takeBatch(inbox)
      yield* follower.apply(batch)
      applied = batch.at(-1)!.seq
      if (pauseMillis > 0 && inbox.waiting.length < batchMax) yield* Effect.sleep(pauseMillis)
    } else if (inbox.ended) {
      return yield* unavailable(`follow ${name}`)(new Error("the stream ended"))
    }
    const now = yield* monotonicMillis
    if (now - savedAt < checkpointMillis) continue
    savedAt = now
    yield* follower.store
    // The next run applies again what is not stored.
    const stored = Math.min(applied, follower.unstoredSince() - 1)
    yield* saveCheckpoint(buckets, checkpoint, stored, follower.notes ?? {})
  }
})
