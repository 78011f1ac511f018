// Followers: read a stream in order from a checkpoint, one process at a time. See streams/followers.ts for why not a durable consumer.
import { DeliverPolicy } from "@nats-io/jetstream"
import { Cause, Clock, Context, Effect, Layer, Random, Schedule } from "effect"
import { keys, metaKey } from "#streams/buckets.ts"
import { type FollowerName, followers, leaseSeconds } from "#streams/followers.ts"
import { streams } from "#streams/index.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { Nats } from "../connection/connection.ts"
import { NatsUnavailable, unavailable } from "../connection/errors.ts"
import { Buckets } from "../kv/bucket.ts"
import { type Stored, storedOfGiven } from "../stream/stored.ts"

/** Messages handled at once: what has arrived, at most this many. */
const batchMax = 256
const renewMillis = 500
const checkpointMillis = 1_000
const again = Schedule.spaced("250 millis")

export interface Follower {
  /** Sequence of the last message applied before this run. */
  readonly from: number
  /** Stands beside the checkpoint. */
  readonly notes?: Readonly<Record<string, unknown>>
  readonly apply: (batch: ReadonlyArray<Stored>) => Effect.Effect<void, NatsUnavailable>
  /**
   * Stores what `apply` left to be stored, as far as there is room. Run every second, before the
   * checkpoint is saved.
   */
  readonly store: Effect.Effect<void, NatsUnavailable>
  /** Sequence of the first message of which something is not stored yet, or Infinity. */
  readonly unstoredSince: () => number
}

export class Followers extends Context.Service<
  Followers,
  {
    /**
     * Holds the follower's lease and, as long as that lasts, applies its stream in order. `start` is run each time the lease is won and
     * begins with nothing remembered. A batch that fails ends the run; the next begins at the checkpoint, and applying twice changes nothing.
     */
    readonly follow: <R>(
      name: FollowerName,
      start: (checkpoint: number) => Effect.Effect<Follower, NatsUnavailable, R>
    ) => Effect.Effect<never, never, R>
  }
>()("bellcast/nats/Followers") {
  static readonly layer = Layer.effect(
    Followers,
    Effect.gen(function* () {
      const { js } = yield* Nats
      const buckets = yield* Buckets
      const holder = (yield* Random.nextInt).toString(36)

      /** The revision of the lease once it is ours; until then it is asked for again and again. */
      const acquire = (name: FollowerName) =>
        Effect.gen(function* () {
          const held = yield* buckets.get("cache", keys.lease(name))
          const free = held === undefined || (held.value as { holder: string }).holder === ""
          if (!free)
            return yield* new NatsUnavailable({
              operation: "lease",
              reason: { _tag: "NoLease" },
              cause: new Error("held")
            })
          return yield* buckets.put("cache", keys.lease(name), { holder }, held?.revision ?? 0, {
            ttlSeconds: leaseSeconds
          })
        }).pipe(Effect.retry(again), Effect.orDie)

      /** Ends only when the lease is lost. */
      const renew = Effect.fnUntraced(function* (name: FollowerName, lease: { revision: number }) {
        while (true) {
          yield* Effect.sleep(renewMillis)
          lease.revision = yield* buckets
            .put("cache", keys.lease(name), { holder }, lease.revision, {
              ttlSeconds: leaseSeconds
            })
            .pipe(
              Effect.timeout((leaseSeconds * 1000) / 2),
              Effect.mapError(
                (cause) =>
                  new NatsUnavailable({
                    operation: "lease lost",
                    reason: { _tag: "NoLease" },
                    cause
                  })
              )
            )
        }
      })

      const release = (name: FollowerName, lease: { revision: number }) =>
        buckets
          .put("cache", keys.lease(name), { holder: "" }, lease.revision, {
            ttlSeconds: leaseSeconds
          })
          .pipe(Effect.timeout("1 second"), Effect.ignore)

      const read = Effect.fnUntraced(function* (
        name: FollowerName,
        follower: Follower,
        lastCheckpoint: { seq: number; revision: number; notes: object }
      ) {
        const { checkpoint, filters, pauseMillis, stream } = followers[name]
        const messages = yield* Effect.acquireRelease(
          Effect.tryPromise({
            try: async () => {
              const consumer = await js.consumers.get(streams[stream].name, {
                filter_subjects: [...filters],
                deliver_policy: DeliverPolicy.StartSequence,
                opt_start_seq: follower.from + 1
              })
              return consumer.consume({ max_messages: batchMax * 2, expires: 5_000 })
            },
            catch: unavailable(`follow ${name}`)
          }),
          (messages) =>
            Effect.promise(() => messages.close()).pipe(
              Effect.timeoutOption("1 second"),
              Effect.ignore
            )
        )
        const waiting: Array<Stored> = []
        let ended = false
        let wake = () => {}
        let goOn = () => {}
        const pump = async () => {
          for await (const msg of messages) {
            waiting.push(storedOfGiven(msg))
            wake()
            // A follower far behind reads no faster than it applies.
            if (waiting.length >= batchMax * 2)
              await new Promise<void>((resolve) => {
                goOn = resolve
              })
          }
        }
        pump()
          .catch(() => {})
          .finally(() => {
            ended = true
            wake()
          })
        // What has come in one packet is one batch: each costs an announcement, and 20,000 of them after a long absence cost seconds.
        const arrival = Effect.callback<void>((resume) => {
          wake = () => {
            wake = () => {}
            setImmediate(resume, Effect.void)
          }
          if (waiting.length > 0 || ended) wake()
        })
        let applied = follower.from
        let savedAt = 0
        const save = Effect.gen(function* () {
          // What is not stored is found again by the next run.
          const seq = Math.min(applied, follower.unstoredSince() - 1)
          const { notes = {} } = follower
          const isNoted = Object.keys(notes).every((name) => name in lastCheckpoint.notes)
          if (seq <= lastCheckpoint.seq && isNoted) return
          lastCheckpoint.revision = yield* buckets.put(
            checkpoint,
            metaKey,
            { v: 1, seq: Math.max(seq, lastCheckpoint.seq), ...notes },
            lastCheckpoint.revision
          )
          lastCheckpoint.seq = Math.max(seq, lastCheckpoint.seq)
          lastCheckpoint.notes = notes
        }).pipe(
          // A full bucket has no room for the checkpoint either: the former one stays good.
          Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.void),
          Effect.mapError(unavailable("checkpoint"))
        )
        while (true) {
          // A quiet stream saves its checkpoint too, once, when the second is over.
          yield* arrival.pipe(Effect.timeoutOption(checkpointMillis))
          if (waiting.length > 0) {
            const batch = waiting.splice(0, batchMax)
            goOn()
            yield* follower.apply(batch)
            applied = batch.at(-1)!.seq
            if (pauseMillis > 0 && waiting.length < batchMax) yield* Effect.sleep(pauseMillis)
          } else if (ended)
            return yield* unavailable(`follow ${name}`)(new Error("the stream ended"))
          const now = yield* Clock.currentTimeMillis
          if (now - savedAt < checkpointMillis) continue
          savedAt = now
          yield* follower.store
          yield* save
        }
      })

      const follow = <R>(
        name: FollowerName,
        start: (checkpoint: number) => Effect.Effect<Follower, NatsUnavailable, R>
      ) => {
        const run = Effect.gen(function* () {
          const lease = { revision: yield* acquire(name) }
          yield* Effect.addFinalizer(() => release(name, lease))
          const meta = yield* buckets.get(followers[name].checkpoint, metaKey)
          const saved = {
            seq: (meta?.value as { seq?: number } | undefined)?.seq ?? 0,
            revision: meta?.revision ?? 0,
            notes: (meta?.value ?? {}) as object
          }
          const work = Effect.gen(function* () {
            const follower = yield* start(saved.seq)
            return yield* read(name, follower, saved)
          })
          return yield* Effect.raceFirst(work, renew(name, lease))
        }).pipe(Effect.scoped)
        // As long as NATS refuses it stops four times a second.
        const tell = makeRateLimitedLog(`${name} stopped and starts again`, Effect.logError)
        return run.pipe(
          Effect.catchCause((cause) =>
            Cause.hasInterruptsOnly(cause) ? Effect.interrupt : tell({ err: Cause.squash(cause) })
          ),
          Effect.repeat(again),
          Effect.andThen(Effect.never)
        )
      }

      return Followers.of({ follow })
    })
  )
}
