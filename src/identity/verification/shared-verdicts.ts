// Verdicts in the bucket `cache`, which all gateways share. A failure of the bucket never fails a
// request: the token is verified instead.
import * as Effect from "effect/Effect"
import { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"
import type { Known } from "../verdict.ts"

const readTimeout = "500 millis"
const writeTimeout = "5 seconds"

export interface SharedVerdict {
  readonly known: Known
  /** Milliseconds since the epoch. */
  readonly until: number
}

export type SharedVerdicts = Effect.Success<typeof makeSharedVerdicts>

export const makeSharedVerdicts = Effect.map(Buckets, (buckets) => ({
  /** A verdict that holds at `now`. */
  read: (key: string, now: number): Effect.Effect<SharedVerdict | undefined> =>
    buckets.get("cache", keys.verification(key)).pipe(
      Effect.timeout(readTimeout),
      Effect.map((entry) => (entry && entry.value.until > now ? entry.value : undefined)),
      Effect.orElseSucceed(() => undefined)
    ),
  write: (key: string, { known, until }: SharedVerdict, now: number) =>
    buckets
      .put("cache", keys.verification(key), { v: 1, known, until }, 0, {
        ttlSeconds: Math.ceil((until - now) / 1000)
      })
      .pipe(Effect.timeout(writeTimeout), Effect.ignore)
}))
