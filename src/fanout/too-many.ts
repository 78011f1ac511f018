// Bounds the broadcasts that wait for their start. A gateway refuses a request beyond the bound;
// NATS clients publish commands that nobody refuses, so the planner rejects those.
import * as Effect from "effect/Effect"
import type { States } from "#broadcasts/states.ts"
import { scheduledMax, scheduledOfOneMax } from "#domain/broadcast.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { isOwn } from "./read-broadcast.ts"

export const tooMany =
  `${scheduledMax} broadcasts wait for their start already, ` +
  `or ${scheduledOfOneMax} of this publisher`

interface Tools {
  readonly log: EventLog["Service"]
  readonly states: States["Service"]
}

/**
 * Whether a broadcast that starts later must not wait. What a gateway accepted may. A recreated
 * consumer reads broadcasts again: those that wait already, and those that were rejected, although
 * there may be room now.
 */
export const isTooMany = Effect.fnUntraced(function* (
  { log, states }: Tools,
  stored: Stored,
  publisher: string
) {
  if (isOwn(stored)) return false
  if ((yield* log.last("log", subjects.state(stored.seq))) !== undefined) return false
  if ((yield* log.last("log", subjects.rejected(stored.seq))) !== undefined) return true
  return states.isFull(publisher)
})
