// Leaves out of a rebuild the registrations that the service has forgotten.
import * as Effect from "effect/Effect"
import type { MemoryBuckets } from "#nats/kv/memory-buckets.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { EndedMillis } from "#projection/forget.ts"

/**
 * `see` is told of each command in LOG. `forget` then removes the registrations from memory that
 * ended before those commands for which the service still keeps such entries.
 */
export const makeEnded = Effect.gen(function* () {
  const since = (yield* readServerTime).serverMillis - (yield* EndedMillis)
  let keptFrom = Number.POSITIVE_INFINITY
  const see = ({ at, seq }: Stored): void => {
    if (at >= since) keptFrom = Math.min(keptFrom, seq)
  }
  const isForgotten = (text: string): boolean => {
    const { on, seq = 0 } = JSON.parse(text) as { readonly on?: boolean; readonly seq?: number }
    return on === false && seq < keptFrom
  }
  const forget = ({ buckets, entries }: MemoryBuckets) => {
    const all = [...entries("registrations").values()]
    return Effect.forEach(
      all.filter(({ text }) => isForgotten(text)),
      ({ revision }) => buckets.remove("registrations", revision),
      { discard: true }
    )
  }
  return { see, forget }
})
