// Verdicts in the bucket `cache`, which all gateways share. A failure of the bucket never fails a
// request: the token is verified instead.
import { Effect } from "effect"
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

export interface SharedVerdicts {
  /** A verdict that holds at `now`. */
  readonly read: (key: string, now: number) => Effect.Effect<SharedVerdict | undefined>
  readonly write: (key: string, verdict: SharedVerdict, now: number) => Effect.Effect<void>
}

export const makeSharedVerdicts = Effect.map(
  Buckets,
  (buckets): SharedVerdicts => ({
    read: (key, now) =>
      buckets.get("cache", keys.verification(key)).pipe(
        Effect.timeout(readTimeout),
        Effect.map((entry) => {
          const verdict = entry?.value
          return verdict !== undefined && verdict.until > now ? verdict : undefined
        }),
        Effect.orElseSucceed(() => undefined)
      ),
    write: (key, { known, until }, now) =>
      buckets
        .put("cache", keys.verification(key), { v: 1, known, until }, 0, {
          ttlSeconds: Math.ceil((until - now) / 1000)
        })
        .pipe(Effect.timeout(writeTimeout), Effect.ignore)
  })
)
