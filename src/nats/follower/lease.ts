// The lease of a follower: an entry of the bucket `cache` that its holder must renew, so that one
// process at a time runs the follower.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { monotonicMillis, nextMultiple } from "#clock/monotonic.ts"
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
/** A renewal that takes longer has failed. */
const renewalMillisMax = 750
/** A renewal has failed this long before the lease ends. */
const marginMillis = 100
const ttl = { ttlSeconds: leaseSeconds }
/**
 * Milliseconds without a renewal after which another process takes the lease. Usually nats-server
 * ends it before. But a nats-server 2.15 that is killed brings replaced entries back
 * (streams/README.md), and a renewal that came back has no end.
 */
export const overdueMillis = 2 * leaseSeconds * 1_000

export interface Lease {
  readonly follower: FollowerName
  /** Identifies this process. */
  readonly holder: string
  revision: number
  /** When its last write began, by the monotonic clock: the lease ends 2 s after it or later. */
  sentAt: number
}

type Kv = Buckets["Service"]

const noLease = (operation: string) => (cause: unknown) =>
  new NatsUnavailable({ operation, reason: { _tag: "NoLease" }, cause })

/** Tries until this process has the lease. */
export const acquire = (buckets: Kv, follower: FollowerName, holder: string) => {
  const key = keys.lease(follower)
  /** The last renewal by another process, and when it was seen first, by the monotonic clock. */
  let seen = { revision: 0, at: 0 }
  return Effect.gen(function* () {
    const former = yield* buckets.get("cache", key)
    const now = yield* monotonicMillis
    if (former !== undefined && former.value.holder !== "") {
      const { revision } = former
      if (seen.revision !== revision) seen = { revision, at: now }
      if (now - seen.at < overdueMillis) return yield* noLease("lease")(new Error("held"))
    }
    const revision = yield* buckets.put("cache", key, { v: 1, holder }, former?.revision ?? 0, ttl)
    const lease: Lease = { follower, holder, revision, sentAt: now }
    return lease
  }).pipe(
    Effect.tapError(() => nextMultiple(acquireMillis)),
    Effect.retry(Schedule.forever),
    Effect.orDie
  )
}

/** Renews the lease until that fails. Fails before the lease ends. */
export const renew = (buckets: Kv, lease: Lease) =>
  Effect.gen(function* () {
    const { follower, holder } = lease
    while (true) {
      yield* nextMultiple(renewMillis)
      const sentAt = yield* monotonicMillis
      const leftMillis = lease.sentAt + leaseSeconds * 1_000 - marginMillis - sentAt
      const timeoutMillis = Math.max(0, Math.min(renewalMillisMax, leftMillis))
      lease.revision = yield* buckets
        .put("cache", keys.lease(follower), { v: 1, holder }, lease.revision, ttl)
        .pipe(Effect.timeout(timeoutMillis), Effect.mapError(noLease("lease lost")))
      lease.sentAt = sentAt
    }
  })

/** Ends the lease at once, so that another process need not wait for its end. */
export const release = (buckets: Kv, { follower, revision }: Lease) =>
  buckets
    .put("cache", keys.lease(follower), { v: 1, holder: "" }, revision, ttl)
    .pipe(Effect.timeout("1 second"), Effect.ignore)
