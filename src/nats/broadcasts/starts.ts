// The broadcasts that started in a span of time, from the changes of states in LOG.
import * as Effect from "effect/Effect"
import { aheadMillisMax } from "#domain/broadcast-start.ts"
import type { BroadcastScheduled } from "#domain/broadcast-state.ts"
import { filters } from "#streams/subjects.ts"
import { EventLog } from "../stream/event-log.ts"

/** Changes of states that are read at once: one with a payload has up to 32 KiB. */
const readMax = 100
/** Reads of one span: 5,000 changes, which are decoded for about 100 ms. */
const readsMax = 50

/** In milliseconds since the epoch. */
interface Span {
  /** Undefined: no broadcast was accepted before, so that none is found. */
  readonly since: number | undefined
  readonly before: number | undefined
}

/** The broadcasts that were accepted before a span and started in it, the newest first. */
export const startsIn = Effect.fnUntraced(function* ({ before = Infinity, since }: Span) {
  const log = yield* EventLog
  const first = since === undefined ? undefined : yield* log.firstSince("log", since)
  if (since === undefined || first === undefined) return []
  const until = Math.min(before, since + aheadMillisMax)
  const found: Array<typeof BroadcastScheduled.Type> = []
  let from = first
  for (let read = 0; read < readsMax; read++) {
    const changes = yield* log.following("log", filters.states, { from, limit: readMax })
    for (const { at, message } of changes)
      if (message.type === "broadcast.started/1" && message.broadcast < first && at < until)
        found.push(message)
    const last = changes.at(-1)
    if (last === undefined || changes.length < readMax || last.at >= until) break
    from = last.seq + 1
  }
  return found.sort((a, b) => b.broadcast - a.broadcast)
})
