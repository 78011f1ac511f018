// The payloads of broadcasts, read from LOG once per worker: the same bytes for every subscription,
// never copied into a job.
import { Effect } from "effect"
import { makeLruCache } from "#basics/lru-cache.ts"
import { payloadOf } from "#domain/broadcast.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { pad } from "../push/encrypt.ts"

/** Payloads in the LRU cache, of 4 KB each. */
const payloadsMax = 256

interface Payload {
  /** Undefined: the broadcast has no payload. */
  readonly padded: Buffer | undefined
}

/**
 * Returns a function that reads the payload of a broadcast; undefined: LOG does not have the
 * broadcast.
 */
export const makePayloads = Effect.gen(function* () {
  const log = yield* EventLog
  const cache = makeLruCache<{ payload?: Payload }>(payloadsMax)
  return Effect.fnUntraced(function* (broadcast: number) {
    const cached = cache.of(String(broadcast), () => ({}))
    if (cached.payload !== undefined) return cached.payload
    const stored = yield* log.at("log", broadcast)
    if (stored?.message.type !== "broadcast/1") return undefined
    const payload = payloadOf(stored.message)
    cached.payload = { padded: payload === undefined ? undefined : pad(payload) }
    return cached.payload
  })
})
