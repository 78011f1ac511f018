// Reserves turns for pushes of a broadcast with a rate: one entry of the bucket `cache` says up to
// when turns are given. A process moves that time on by its own turns, over the revision that it
// read. So no two processes give the same turn, and no process has to live for others to send.
import * as Effect from "effect/Effect"
import { moment, monotonicOf } from "#clock/clocks.ts"
import type { BroadcastRef } from "#domain/job.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"

/** No turn is reserved so long before it: then the clock of NATS was set back since. */
const earlyMillisMax = 3_000
/** Longer than any turn stays unused. */
const ttl = { ttlSeconds: 60 }

/** A job of a broadcast with a rate. */
export type LimitedRef = BroadcastRef & { readonly rate: number }

/** Milliseconds between two turns. */
export const intervalOf = (rate: number): number => 1_000 / rate

/**
 * A turn is lost when it is not used for so long. A service that was frozen, or had to wait for a
 * push service, sends faster afterwards by these turns: in 10 s by 3 %, or by one push.
 */
export const unusedMillisMax = (rate: number): number => Math.max(300, intervalOf(rate))

/** Turns with an interval between them. */
export interface Reserved {
  readonly count: number
  /** The time of the first one, by the monotonic clock. */
  readonly first: number
}

/**
 * Reserves `count` turns; none if the first one comes later than in `leadMillis`. Fails with
 * AppendConflict if another process reserved some meanwhile.
 */
export const reserve = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  { broadcast, rate }: LimitedRef,
  count: number,
  leadMillis: number
) {
  const key = keys.turns(broadcast)
  const entry = yield* buckets.get("cache", key)
  const now = yield* moment
  const until = entry?.value.until ?? now.at
  // After a rest the first turn is now. One of long ago would be lost before it is used.
  const goesOn = until >= now.at - unusedMillisMax(rate) && until <= now.at + earlyMillisMax
  const from = goesOn ? until : now.at
  const reserved: Reserved = { count, first: monotonicOf(now, from) }
  if (from > now.at + leadMillis) return { ...reserved, count: 0 }
  const next = from + count * intervalOf(rate)
  yield* buckets.put("cache", key, { v: 1, until: next }, entry?.revision ?? 0, ttl)
  return reserved
})
