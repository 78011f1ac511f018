// The payloads and the recipients of a broadcast, read once for all its jobs.
import * as Effect from "effect/Effect"
import { type BroadcastBody, payloadOf } from "#domain/broadcast.ts"
import type { BroadcastRef } from "#domain/job.ts"
import { lookup } from "#domain/locale.ts"
import type { Recipients } from "#domain/recipients.ts"
import { Caches } from "#memory/cache-memory.ts"
import { ReadMemory } from "#memory/read-memory.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { type WholeBroadcast, wholeBroadcast } from "#nats/stream/whole-broadcast.ts"
import { pad } from "../push/encrypt.ts"
import type { Target } from "../push/target.ts"

/** Bytes of memory: a variant with its language; a user, channel or payload with its objects. */
const variantBytes = 300
const itemBytes = 100

/** The payload in one language. */
interface Variant {
  /** Undefined: no payload. */
  readonly padded: Buffer | undefined
  /** The language of the variant; absent: that for all others. */
  readonly locale?: string
}

export interface Payload {
  readonly variantOf: (target: Target) => Variant
  readonly to: Recipients
  /** Bytes of memory, about: 5 KB, or 0.2 MB with all variants and recipients. */
  readonly bytes: number
}

const paddedOf = (data: BroadcastBody["data"]): Buffer | undefined => {
  const payload = payloadOf(data)
  return payload === undefined ? undefined : pad(payload)
}

const bytesOf = (variants: ReadonlyArray<Variant>, { channels, except, users }: Recipients) =>
  variants.reduce((sum, { padded }) => sum + variantBytes + (padded?.length ?? 0), 0) +
  itemBytes * (1 + channels.length + except.length + users.length)

const readPayload = ({ body, to }: WholeBroadcast): Payload => {
  const others: Variant = { padded: paddedOf(body.data) }
  const variants = new Map(
    Object.entries(body.data_by_locale ?? {}).map(([locale, data]): [string, Variant] => [
      locale.toLowerCase(),
      { padded: paddedOf(data), locale }
    ])
  )
  const variantOf = ({ stored }: Target) => {
    const { locale } = stored.data
    return lookup(typeof locale === "string" ? locale : "", (tag) => variants.get(tag)) ?? others
  }
  return {
    variantOf: variants.size === 0 ? () => others : variantOf,
    to,
    bytes: bytesOf([others, ...variants.values()], to)
  }
}

/**
 * Returns a function that reads the payload of a broadcast and to whom it goes, once: the same
 * bytes for every push, never copied into a job. Undefined: LOG does not have the broadcast.
 */
export const makePayloads = Effect.gen(function* () {
  const log = yield* EventLog
  const memory = new ReadMemory<Payload>((yield* Caches).share("payloads"), 1)
  return Effect.fnUntraced(function* ({ broadcast, payload }: BroadcastRef) {
    const key = String(broadcast)
    const known = memory.find(key)
    if (known !== undefined) return known
    const stored = yield* log.at("log", broadcast)
    const whole = stored === undefined ? undefined : yield* wholeBroadcast(log, stored, payload)
    if (whole === undefined) return undefined
    const read = readPayload(whole)
    memory.place(key, read, read.bytes)
    return read
  })
})

export type Payloads = Effect.Success<typeof makePayloads>
