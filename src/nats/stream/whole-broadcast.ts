// Reads a broadcast with the parts that were stored before it: what it says, and to whom it goes.
import * as Effect from "effect/Effect"
import type { BroadcastBody } from "#domain/broadcast.ts"
import { joined, type Recipients } from "#domain/recipients.ts"
import { parseBroadcast } from "#streams/subjects.ts"
import { directToken } from "#streams/tokens.ts"
import type { NatsUnavailable } from "../connection/errors.ts"
import type { EventLog } from "./event-log.ts"
import type { Stored } from "./stored.ts"

export interface WholeBroadcast {
  readonly body: BroadcastBody
  readonly to: Recipients
}

/** Undefined: one of them is not in LOG before `seq`. */
const partsBefore = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  sequences: ReadonlyArray<number>,
  seq: number
) {
  const parts = yield* Effect.forEach(sequences, (part) =>
    part < seq ? log.at("log", part) : Effect.succeed(undefined)
  )
  const found = parts.flatMap((part) =>
    part?.message.type === "direct.part/1" ? [part.message] : []
  )
  return found.length === parts.length ? found : undefined
})

/** The payload in a change of a broadcast; undefined: the change has none. */
const bodyOf = Effect.fnUntraced(function* (log: EventLog["Service"], change: number) {
  const message = (yield* log.at("log", change))?.message
  if (message?.type !== "broadcast.changed/1") return undefined
  const parts = yield* partsBefore(log, message.parts ?? [], change)
  return parts && joined(message, [message, ...parts]).body
})

const readWhole = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { message, seq, subject }: Stored
): Effect.fn.Return<WholeBroadcast | undefined, NatsUnavailable> {
  const channel = parseBroadcast(subject)?.channel
  if (channel === undefined) return undefined
  if (message.type === "broadcast/1" && channel !== directToken)
    return { body: message, to: { channels: [channel], users: [], except: [] } }
  if (message.type !== "direct/1" || channel !== directToken) return undefined
  const parts = yield* partsBefore(log, message.parts ?? [], seq)
  return parts && joined(message, [message, ...parts])
})

/**
 * Undefined: the message is no broadcast, or one of its parts is not in LOG before it. `payload`:
 * sequence of a change with another payload.
 */
export const wholeBroadcast = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  stored: Stored,
  payload?: number
) {
  const whole = yield* readWhole(log, stored)
  if (whole === undefined || payload === undefined) return whole
  const body = yield* bodyOf(log, payload)
  return body && { ...whole, body }
})
