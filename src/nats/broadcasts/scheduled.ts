// The broadcasts that wait for their start.
import * as Effect from "effect/Effect"
import { changeIn, stateAfter } from "#domain/broadcast-state.ts"
import { filters, parseState } from "#streams/subjects.ts"
import { EventLog } from "../stream/event-log.ts"
import { originOf } from "./state.ts"

/** From LOG, the oldest first. */
export const scheduledBroadcasts = Effect.gen(function* () {
  const waiting = new Set<number>()
  yield* (yield* EventLog).replay("log", [filters.states], ({ message, subject }) => {
    const broadcast = parseState(subject)
    const change = changeIn(message)
    if (broadcast === undefined || change === undefined) return
    if (stateAfter(change) === "scheduled") waiting.add(broadcast)
    else waiting.delete(broadcast)
  })
  const origins = yield* Effect.forEach([...waiting], originOf, { concurrency: 16 })
  return origins.filter((origin) => origin !== undefined)
})
