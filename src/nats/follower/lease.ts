// The lease of a follower: an entry of the bucket `cache` that its holder must renew, so that one
// process at a time runs the follower.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis, nextMultiple } from "#clock/clocks.ts"
import { keys } from "#streams/buckets.ts"
import { type FollowerName, leaseSeconds } from "#streams/followers.ts"
import { NatsUnavailable } from "../connection/errors.ts"
import type { Buckets } from "../kv/bucket.ts"

/**
 * Half of the lease. Each renewal is a write that waits for the disk of nats-server: two a second
 * cost a quarter of what nats-server needs at rest.
 */
const renewMillis = 1_000
const acquireMillis = 250
/** A renewal has failed this long before the lease ends. */
const marginMillis = 100
/**
 * The longest lease. A write of NATS may take seconds, on a disk that others keep busy. A lease of
 * four such writes lets its holder go on; one of 2 s would pass from process to process, and each
 * would begin anew.
 */
export const leaseSecondsMax = 16

/** How long the leases of a follower are, by what its writes took in this process. */
export interface Pace {
  seconds: number
  /** Leases are never shorter than this. */
  readonly secondsMin: number
}
export const newPace = (secondsMin = leaseSeconds): Pace => ({ seconds: secondsMin, secondsMin })

const paceAfter = (writeSeconds: number, { secondsMin }: Pace): number =>
  Math.min(leaseSecondsMax, Math.max(secondsMin, Math.ceil(4 * writeSeconds)))

/**
 * Milliseconds without a renewal after which another process takes a lease. Usually nats-server
 * ends it before. But a nats-server 2.15 that is killed brings replaced entries back
 * (streams/README.md), and a renewal that came back has no end.
 */
export const overdueMillisOf = (lease?: { readonly seconds?: number }) =>
  2 * (lease?.seconds ?? leaseSeconds) * 1_000

export interface Lease {
  readonly follower: FollowerName
  /** Identifies this process. */
  readonly holder: string
  revision: number
  /** When its last write began, by the monotonic clock. */
  sentAt: number
  /** From `sentAt` on, at least. */
  seconds: number
  readonly pace: Pace
}

type Kv = Buckets["Service"]

const noLease = (operation: string) => (cause: unknown) =>
  new NatsUnavailable({ operation, reason: { _tag: "NoLease" }, cause })

/** Writes the lease. Measures how long that takes. */
const write = Effect.fnUntraced(function* (
  buckets: Kv,
  { follower, holder, pace, revision }: Omit<Lease, "sentAt" | "seconds">
) {
  const { seconds } = pace
  const sentAt = yield* monotonicMillis
  const value = { v: 1, holder, ...(seconds === leaseSeconds ? {} : { seconds }) } as const
  const next = yield* buckets.put("cache", keys.lease(follower), value, revision, {
    ttlSeconds: seconds
  })
  pace.seconds = paceAfter(((yield* monotonicMillis) - sentAt) / 1_000, pace)
  return { revision: next, sentAt, seconds }
})

/** Tries until this process has the lease. */
export const acquire = (
  buckets: Kv,
  follower: FollowerName,
  holder: string,
  pace: Pace = newPace()
) => {
  const key = keys.lease(follower)
  /** The last renewal by another process, and when it was seen first, by the monotonic clock. */
  let seen = { revision: 0, at: 0 }
  return Effect.gen(function* () {
    const former = yield* buckets.get("cache", key)
    const now = yield* monotonicMillis
    if (former !== undefined && former.value.holder !== "") {
      const { revision, value } = former
      if (seen.revision !== revision) seen = { revision, at: now }
      if (now - seen.at < overdueMillisOf(value)) return yield* noLease("lease")(new Error("held"))
    }
    const revision = former?.revision ?? 0
    const free = { follower, holder, pace, revision }
    const lease: Lease = { ...free, ...(yield* write(buckets, free)) }
    return lease
  }).pipe(
    Effect.tapError(() => nextMultiple(acquireMillis)),
    Effect.retry(Schedule.forever),
    Effect.orDie
  )
}

/** Renews the lease until that fails. Fails before the lease ends: then the next one is longer. */
export const renew = (buckets: Kv, lease: Lease) => {
  const lost = noLease(`renew the lease of ${lease.follower}`)
  return Effect.gen(function* () {
    while (true) {
      yield* nextMultiple(renewMillis)
      const endsAt = lease.sentAt + lease.seconds * 1_000 - marginMillis
      const leftMillis = Math.max(0, endsAt - (yield* monotonicMillis))
      const written = yield* write(buckets, lease).pipe(
        Effect.mapError(lost),
        Effect.timeoutOrElse({
          duration: leftMillis,
          orElse: () => Effect.fail(lost(new Error(notInTime(lease, leftMillis))))
        }),
        Effect.tapError(() =>
          Effect.sync(() => {
            lease.pace.seconds = Math.min(leaseSecondsMax, 2 * lease.seconds)
          })
        )
      )
      Object.assign(lease, written)
    }
  })
}

/** Why a lease was not renewed. Without time left, the process itself was late. */
const notInTime = ({ seconds }: Lease, leftMillis: number): string =>
  leftMillis === 0
    ? `this process did nothing for ${seconds} s: it, or its machine, is too busy`
    : `NATS stored no renewal within ${Math.round(leftMillis)} ms`

/** Ends the lease at once, so that another process need not wait for its end. */
export const release = (buckets: Kv, { follower, revision }: Lease) =>
  buckets
    .put("cache", keys.lease(follower), { v: 1, holder: "" }, revision, {
      ttlSeconds: leaseSeconds
    })
    .pipe(Effect.timeout("1 second"), Effect.ignore)
