// Bounds the broadcasts that wait for their start. A gateway refuses a request beyond the bound;
// NATS clients publish commands that nobody refuses, so the planner rejects those.
import * as Effect from "effect/Effect"
import { scheduledMax } from "#domain/broadcast-start.ts"
import type { States } from "#nats/follower/states.ts"
import type { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { subjects } from "#streams/subjects.ts"
import { isOwn } from "./read-broadcast.ts"

export const tooMany = `${scheduledMax} other broadcasts wait for their start`

interface Tools {
  readonly log: EventLog["Service"]
  readonly states: States["Service"]
}

/** Whether a broadcast that starts later must not wait. What a gateway accepted may. */
export const isTooMany = Effect.fnUntraced(function* ({ log, states }: Tools, stored: Stored) {
  if (states.waiting() < scheduledMax || isOwn(stored)) return false
  // A recreated consumer reads those again that wait already.
  return (yield* log.last("log", subjects.state(stored.seq))) === undefined
})
