// The payload of a broadcast, read from LOG once per worker: the same bytes for every subscriber, never copied into a job.
import { Effect } from "effect"
import { payloadOf } from "#domain/broadcast.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { pad } from "../push/encrypt.ts"

/** Broadcasts under way at once; more are read again. 4 KB each. */
const rememberedMax = 256

/** Undefined: the broadcast is not in LOG (erased, or never was one). `padded` undefined: it has no payload. */
export const makePayloads = Effect.gen(function* () {
  const log = yield* EventLog
  const remembered = new Map<number, { readonly padded: Buffer | undefined }>()
  return Effect.fnUntraced(function* (broadcast: number) {
    const known = remembered.get(broadcast)
    if (known !== undefined) return known
    const stored = yield* log.at("log", broadcast)
    if (stored?.message.type !== "broadcast/1") return undefined
    const payload = payloadOf(stored.message)
    const found = { padded: payload === undefined ? undefined : pad(payload) }
    for (const oldest of remembered.keys()) {
      if (remembered.size < rememberedMax) break
      remembered.delete(oldest)
    }
    remembered.set(broadcast, found)
    return found
  })
})
