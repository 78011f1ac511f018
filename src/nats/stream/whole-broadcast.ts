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

/** Undefined: the message is no broadcast, or one of its parts is not in LOG before it. */
export const wholeBroadcast = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { message, seq, subject }: Stored
): Effect.fn.Return<WholeBroadcast | undefined, NatsUnavailable> {
  const channel = parseBroadcast(subject)?.channel
  if (channel === undefined) return undefined
  if (message.type === "broadcast/1" && channel !== directToken)
    return { body: message, to: { channels: [channel], users: [], except: [] } }
  if (message.type !== "direct/1" || channel !== directToken) return undefined
  const parts = yield* Effect.forEach(message.parts ?? [], (part) =>
    part < seq ? log.at("log", part) : Effect.succeed(undefined)
  )
  const found = parts.flatMap((part) =>
    part?.message.type === "direct.part/1" ? [part.message] : []
  )
  return found.length === parts.length ? joined(message, [message, ...found]) : undefined
})
