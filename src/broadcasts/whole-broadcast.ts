// Reads a broadcast with its parts: to whom it goes, and what it says. Parts are messages that
// gateways stored before the broadcast. What anybody else publishes names no parts: its publisher
// would read whom others send to, and make every reader fetch messages of his choice.
import * as Effect from "effect/Effect"
import type { BroadcastBody } from "#domain/broadcast.ts"
import { isOwnSource, readHeaders } from "#domain/broadcast.ts"
import {
  type DirectPart,
  firstData,
  type Recipients,
  recipientsIn,
  variantsIn
} from "#domain/recipients.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { parseBroadcast, parseState, subjects } from "#streams/subjects.ts"
import { isDirect } from "#streams/tokens.ts"

export interface WholeBroadcast {
  readonly body: BroadcastBody
  readonly to: Recipients
}

type Log = EventLog["Service"]

/** The message of a broadcast to several channels or to users; undefined: the message is none. */
const directIn = ({ message, subject }: Stored) => {
  const { channel, source = "" } = parseBroadcast(subject) ?? {}
  return isDirect(channel) && isOwnSource(source) && message.type === "direct" ? message : undefined
}

/** Tests of subscriptions are published by any user. */
export const isSubscriptionTest = (stored: Stored): boolean =>
  directIn(stored)?.subscription !== undefined

/** Whether a broadcast is a test: of a subscription, or as its publisher said. */
export const isTest = (stored: Stored): boolean =>
  directIn(stored) !== undefined &&
  (readHeaders(stored.header).headers.test === true || isSubscriptionTest(stored))

/** To whom a broadcast to one channel goes; undefined: the message is none. */
const channelIn = ({ message, subject }: Stored): Recipients | undefined => {
  const channel = parseBroadcast(subject)?.channel
  return channel === undefined || isDirect(channel) || message.type !== "broadcast"
    ? undefined
    : { channels: [channel], users: [], except: [] }
}

/** The part that a gateway stored before `seq`; undefined: the message there is none. */
const partAt = Effect.fnUntraced(function* (log: Log, part: number, seq: number) {
  const stored = part < seq ? yield* log.at("log", part) : undefined
  const isPart = stored?.subject === subjects.part
  return isPart && stored.message.type === "direct.part" ? stored.message : undefined
})

/** Undefined: one of them is not in LOG before `seq`. */
const partsBefore = Effect.fnUntraced(function* (
  log: Log,
  sequences: ReadonlyArray<number>,
  seq: number
) {
  const found: Array<DirectPart> = []
  for (const sequence of sequences) {
    const part = yield* partAt(log, sequence, seq)
    if (part === undefined) return undefined
    found.push(part)
  }
  return found
})

/** What a message with its parts says; undefined: one of them is not in LOG before it. */
const bodyOf = Effect.fnUntraced(function* (
  log: Log,
  message: DirectPart & {
    readonly data?: BroadcastBody["data"]
    readonly parts?: ReadonlyArray<number>
  },
  seq: number
) {
  const { data, parts = [] } = message
  const others = yield* partsBefore(log, parts, seq)
  if (others === undefined) return undefined
  const body: BroadcastBody = { data_by_locale: variantsIn([message, ...others]) }
  return { body: data === undefined ? body : { ...body, data }, parts: others }
})

/** The change of a broadcast at a sequence; undefined: there is none. */
const changeAt = Effect.fnUntraced(function* (log: Log, change: number) {
  const stored = yield* log.at("log", change)
  const isState = stored !== undefined && parseState(stored.subject) !== undefined
  return isState && stored.message.type === "broadcast.changed" ? stored.message : undefined
})

/** The payload in a change of a broadcast; undefined: the change has none. */
const changedBody = Effect.fnUntraced(function* (log: Log, change: number) {
  const message = yield* changeAt(log, change)
  return message && (yield* bodyOf(log, message, change))?.body
})

/**
 * To whom a broadcast goes. Undefined: the message is no broadcast, or a part is not in LOG before
 * it. Reads no parts with variants alone; and no further parts once `goesOn` is false of the
 * recipients so far, which are then the result.
 */
export const readRecipients = Effect.fnUntraced(function* <E = never, R = never>(
  log: Log,
  stored: Stored,
  goesOn: (soFar: Recipients) => Effect.Effect<boolean, E, R> = () => Effect.succeed(true)
): Effect.fn.Return<Recipients | undefined, NatsUnavailable | E, R> {
  return (yield* readHead(log, stored, undefined, goesOn))?.to
})

/**
 * As `readRecipients`, with the data that stands for the broadcast where lists show it
 * (`firstData`; undefined: no payload). `payload`: sequence of a change with another payload.
 */
export const readHead = Effect.fnUntraced(function* <E = never, R = never>(
  log: Log,
  stored: Stored,
  payload?: number,
  goesOn: (soFar: Recipients) => Effect.Effect<boolean, E, R> = () => Effect.succeed(true)
): Effect.fn.Return<
  { readonly to: Recipients; readonly data: BroadcastBody["data"] } | undefined,
  NatsUnavailable | E,
  R
> {
  const changed = payload === undefined ? undefined : yield* changeAt(log, payload)
  const dataOf = (said: BroadcastBody) => firstData(changed ?? said)
  const direct = directIn(stored)
  if (direct === undefined) {
    const to = channelIn(stored)
    return to && { to, data: dataOf(stored.message as BroadcastBody) }
  }
  const read: Array<DirectPart> = [direct]
  for (const part of direct.parts ?? []) {
    const hasAll = read.at(-1)!.data_by_locale !== undefined
    if (hasAll || !(yield* goesOn(recipientsIn(read)))) break
    const found = yield* partAt(log, part, stored.seq)
    if (found === undefined) return undefined
    read.push(found)
  }
  const { data, subscription } = direct
  const said = { ...(data === undefined ? {} : { data }), data_by_locale: variantsIn(read) }
  const to = { ...recipientsIn(read), ...(subscription === undefined ? {} : { subscription }) }
  return { to, data: dataOf(said) }
})

/**
 * Undefined: the message is no broadcast, or one of its parts is not in LOG before it. `payload`:
 * sequence of a change with another payload.
 */
export const wholeBroadcast = Effect.fnUntraced(function* (
  log: Log,
  stored: Stored,
  payload?: number
): Effect.fn.Return<WholeBroadcast | undefined, NatsUnavailable> {
  if (payload !== undefined) {
    const to = yield* readRecipients(log, stored)
    const body = to && (yield* changedBody(log, payload))
    return body && { body, to }
  }
  const direct = directIn(stored)
  if (direct === undefined) {
    const to = channelIn(stored)
    return to && { body: stored.message as BroadcastBody, to }
  }
  const { subscription } = direct
  const found = yield* bodyOf(log, direct, stored.seq)
  if (found === undefined) return undefined
  const to = recipientsIn([direct, ...found.parts])
  return { body: found.body, to: subscription === undefined ? to : { ...to, subscription } }
})
