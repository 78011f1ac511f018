// Records the day of the last use of each token, in the bucket `cache`: one write a token and day.
// A failure of the bucket never fails a request.
import * as Effect from "effect/Effect"
import { LruCache } from "#basics/bounded.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"

const dayMillis = 24 * 3_600_000
/** Tokens whose use of today is known to be recorded. */
const recordedMax = 10_000
const writeTimeout = "5 seconds"

/** The day of a time, in UTC: `2026-11-22`. */
const dayOf = (millis: number): string => new Date(millis).toISOString().slice(0, 10)

/** A function that records the use of a token at a time in milliseconds, without waiting. */
export const makeLastUse = Effect.gen(function* () {
  const buckets = yield* Buckets
  const scope = yield* Effect.scope
  const recorded = new LruCache<true>(recordedMax)
  const record = Effect.fnUntraced(function* (hash: string, now: number) {
    const key = keys.tokenUse(hash)
    const day = dayOf(now)
    const entry = yield* buckets.get("cache", key)
    if (entry === undefined || entry.value.day < day)
      yield* buckets.put("cache", key, { v: 1, day }, entry?.revision ?? 0, { ttlSeconds: "never" })
    recorded.set(hash, true, now - (now % dayMillis) + dayMillis)
  })
  return (hash: string, now: number): Effect.Effect<unknown> =>
    recorded.get(hash, now) === undefined
      ? Effect.forkIn(Effect.ignore(Effect.timeout(record(hash, now), writeTimeout)), scope)
      : Effect.void
})
