// The payload of a broadcast, in each of its languages, and to whom the broadcast goes. Read once
// for all jobs of a broadcast: the same bytes for every push, never copied into a job.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { type WholeBroadcast, wholeBroadcast } from "#broadcasts/whole-broadcast.ts"
import { type BroadcastBody, lookupLocale, payloadOf } from "#domain/broadcast.ts"
import type { BroadcastRef } from "#domain/job.ts"
import type { Recipients } from "#domain/recipients.ts"
import { Caches, MemoryCache } from "#memory/cache-memory.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Target } from "../attempt.ts"
import { pad } from "../push/encrypt.ts"

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

const makePayloads = Effect.gen(function* () {
  const log = yield* EventLog
  const memory = new MemoryCache<Payload>((yield* Caches).share("payloads"), 1)
  return {
    /** Reads the payload of a broadcast. Undefined: LOG does not have the broadcast. */
    of: Effect.fnUntraced(function* ({ broadcast, payload }: BroadcastRef) {
      const key = String(broadcast)
      const known = memory.get(key)
      if (known !== undefined) return known
      const stored = yield* log.at("log", broadcast)
      const whole = stored === undefined ? undefined : yield* wholeBroadcast(log, stored, payload)
      if (whole === undefined) return undefined
      const read = readPayload(whole)
      memory.set(key, read, read.bytes)
      return read
    })
  }
})

export class Payloads extends Context.Service<Payloads, Effect.Success<typeof makePayloads>>()(
  "bellcast/delivery/Payloads"
) {
  static readonly layer = Layer.effect(Payloads, makePayloads)
}

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
    return (
      lookupLocale(typeof locale === "string" ? locale : "", (tag) => variants.get(tag)) ?? others
    )
  }
  return {
    variantOf: variants.size === 0 ? () => others : variantOf,
    to,
    bytes: bytesOf([others, ...variants.values()], to)
  }
}

const paddedOf = (data: BroadcastBody["data"]): Buffer | undefined => {
  const payload = payloadOf(data)
  return payload === undefined ? undefined : pad(payload)
}

const bytesOf = (variants: ReadonlyArray<Variant>, { channels, except, users }: Recipients) =>
  variants.reduce((sum, { padded }) => sum + variantBytes + (padded?.length ?? 0), 0) +
  itemBytes * (1 + channels.length + except.length + users.length)
