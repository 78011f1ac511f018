// Builds the buckets from the streams, with the same values, under the leases of the followers.
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { bucketState, emptyBucket, noteMaking, streamState } from "#nats/admin/maintenance.ts"
import { provision } from "#nats/admin/provision.ts"
import { refuseOtherStreams } from "#nats/admin/start-checks.ts"
import { Followers } from "#nats/follower/follower.ts"
import { leaseSecondsMax, overdueMillisOf } from "#nats/follower/lease.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { type DiskBuckets, NoScratch } from "#nats/kv/disk-buckets.ts"
import { readOr } from "#nats/kv/entries.ts"
import { type BucketName, buckets, keys, metaKey, projections } from "#streams/buckets.ts"
import { type FollowerName, followerNames } from "#streams/followers.ts"
import { storedForm, streams } from "#streams/index.ts"
import { foldStreams } from "./fold.ts"
import { failed, hindered, note, type RebuildFailed } from "./notes.ts"
import { fitWorkToLog } from "./work-of-log.ts"
import { historyOf, pauseWork, writeBuckets } from "./write.ts"

/**
 * Makes the buckets equal to what the streams say. Folds into a file, so that a bucket is written
 * only where it differs, and everything else goes on meanwhile. Returns how many entries each has,
 * and how many were written or removed. Fails if projection or tally runs.
 */
export const rebuild = Effect.fn("Rebuild.rebuild")(function* () {
  const log = yield* streamState(streams.log)
  if (log === undefined)
    return yield* failed(
      `this NATS has no stream ${streams.log.name}: there is nothing to rebuild from`
    )
  yield* refuseOtherStreams
  // First make what else is missing, such as the bucket of leases.
  yield* provision(log.replicas, {}, ["cache"])
  const leases = yield* Effect.forEach(followerNames, (name) => holdLease(name, "refuse"))
  const changes = yield* rebuildUnder(leases, log.replicas)
  return yield* Effect.forEach(changes, ({ bucket, changed }) =>
    Effect.map(bucketState(bucket), (state) => ({
      bucket: buckets[bucket].name,
      entries: (state?.messages ?? 1) - 1,
      changed
    }))
  )
}, Effect.scoped)

/**
 * Makes the buckets equal to what the streams say, until a lease is lost. Writes nothing before
 * `mayWrite` ends.
 */
export const rebuildUnder = (
  leases: ReadonlyArray<HeldLease>,
  replicas: number,
  mayWrite: Effect.Effect<void> = Effect.void
) =>
  Effect.raceAllFirst([foldAndWrite(replicas, mayWrite), ...leases.map(({ lost }) => lost)]).pipe(
    Effect.tap(noteMaking(undefined))
  )

const foldAndWrite = Effect.fnUntraced(
  function* (replicas: number, mayWrite: Effect.Effect<void>) {
    const { lastWork, taken } = yield* fitWorkToLog
    const { floors, folded } = yield* foldStreams(lastWork, taken)
    yield* mayWrite
    const unreadable = yield* unreadableBuckets(floors)
    return unreadable.length === 0
      ? yield* writeBuckets(folded)
      : yield* writePaused(replicas, floors, unreadable, folded)
  },
  Effect.scoped,
  Effect.catchDefect((defect) =>
    defect instanceof NoScratch ? Effect.fail(failed(defect.message)) : Effect.die(defect)
  )
)

interface Unreadable {
  readonly bucket: BucketName
  /** Whether the bucket has entries of this form: a rebuild that was killed has written them. */
  readonly isBegun: boolean
}

/**
 * The buckets that workers must not read before they are written: those that are missing, have
 * another form, were left half built, or have lower revisions than jobs in WORK wait for.
 */
const unreadableBuckets = Effect.fnUntraced(function* (floors: Floors) {
  const { get } = yield* Buckets
  const found = yield* Effect.forEach(
    projections,
    Effect.fnUntraced(function* (bucket) {
      const state = yield* bucketState(bucket)
      const isBegun =
        state !== undefined &&
        state.form === storedForm.buckets &&
        state.lastSeq >= (floors[bucket] ?? 0)
      const meta = isBegun ? (yield* readOr(get(bucket, metaKey), undefined))?.value : undefined
      return { bucket, isBegun, isReadable: meta !== undefined && meta.unbuilt !== true }
    })
  )
  return found.filter(({ isReadable }) => !isReadable)
})

/** The revisions that the buckets must have at least. */
type Floors = Partial<Record<BucketName, number>>

/**
 * Pauses planning and delivery, empties the buckets that are not begun, and writes what differs: of
 * those that are begun, what a killed rebuild has not written.
 */
const writePaused = Effect.fnUntraced(function* (
  replicas: number,
  floors: Floors,
  unreadable: ReadonlyArray<Unreadable>,
  folded: DiskBuckets
) {
  const pause = yield* pauseWork
  yield* pause.keep
  const emptied = unreadable.filter(({ isBegun }) => !isBegun)
  const empty = Effect.fnUntraced(function* (bucket: BucketName) {
    const { get } = yield* Buckets
    const isThere = (yield* bucketState(bucket)) !== undefined
    const former = isThere ? (yield* readOr(get(bucket, metaKey), undefined))?.value : undefined
    yield* emptyBucket(bucket, replicas, floors[bucket] ?? 0, yield* historyOf(bucket, former))
  })
  const write = Effect.andThen(
    Effect.forEach(emptied, ({ bucket }) => empty(bucket), { discard: true }),
    writeBuckets(folded)
  )
  const changes = yield* Effect.raceFirst(write, pause.held)
  yield* pause.end
  return changes
}, Effect.scoped)

interface HeldLease {
  /** Fails when the lease is lost. */
  readonly lost: Effect.Effect<never, RebuildFailed>
}

/**
 * Holds a follower's lease until the scope ends. While a running service keeps it, fails (`refuse`)
 * or waits. The lease is as long as leases may be: a fold takes the processor for seconds on a busy
 * machine, and nobody else could go on in the meantime.
 */
export const holdLease = Effect.fnUntraced(function* (
  name: FollowerName,
  whileKept: "refuse" | "wait"
) {
  const followers = yield* Followers
  const former = yield* (yield* Buckets).get("cache", keys.lease(name))
  // A lease that is not renewed is taken within this time.
  const waitMillis = overdueMillisOf(former?.value) + 1_000
  const held = yield* Deferred.make<void>()
  const lost = yield* Deferred.make<never, RebuildFailed>()
  const loss = Deferred.fail(lost, hindered(`the lease of the ${name} was lost: run this again`))
  const hold = Deferred.succeed(held, undefined).pipe(
    Effect.andThen(Effect.never),
    Effect.ensuring(loss)
  )
  yield* Effect.forkScoped(followers.whileLeased(name, hold, leaseSecondsMax))
  const waits = `waiting for the lease of the ${name}`
  const most = `at most ${waitMillis / 1000} s`
  const kept = `a running service holds the lease of the ${name}: stop it first`
  yield* Deferred.await(held).pipe(
    Effect.timeoutOrElse({
      duration: announceMillis,
      orElse: () =>
        Effect.andThen(
          note(whileKept === "wait" ? `${waits}: ${keptMeanwhile}` : `${waits}, ${most}`),
          Deferred.await(held)
        )
    }),
    whileKept === "wait"
      ? (wait) => wait
      : Effect.timeoutOrElse({ duration: waitMillis, orElse: () => Effect.fail(failed(kept)) })
  )
  const found: HeldLease = { lost: Deferred.await(lost) }
  return found
})

/** After this time the wait is announced. A free lease is taken sooner. */
const announceMillis = 500

const keptMeanwhile = "if a process of an earlier version has it and does not end, stop that one"
