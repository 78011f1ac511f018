// The broadcasts that started in a span of time, from the changes of states in LOG.
import * as Effect from "effect/Effect"
import type { BroadcastScheduled } from "#domain/broadcast-state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { typeHeader } from "#nats/stream/stored.ts"
import { filters } from "#streams/subjects.ts"

/** Changes of states that are read at once: one with a payload has up to 32 KiB. */
const readMax = 100
/** Reads of one span, in 32 MiB. */
const readsMaxDefault = 10
/** Reads of a command, one after the other: 100,000 changes. */
export const readsOfCommandMax = 1_000
const started = "broadcast.started/1"

/** In milliseconds since the epoch. */
interface Span {
  /** Undefined: no broadcast was accepted before, so that none is found. */
  readonly since: number | undefined
  readonly before: number | undefined
  /** Most reads of changes; absent: 10. */
  readonly changeReadsMax?: number
}

/** The broadcasts that were accepted before a span and started in it, the newest first. */
export const startedIn = Effect.fnUntraced(function* ({
  before = Infinity,
  changeReadsMax = readsMaxDefault,
  since
}: Span) {
  const log = yield* EventLog
  const first = since === undefined ? undefined : yield* log.firstSince("log", since)
  if (since === undefined || first === undefined) return []
  const found: Array<typeof BroadcastScheduled.Type> = []
  let from = first
  for (let read = 0; read < changeReadsMax; read++) {
    const changes = yield* log.following("log", filters.states, { from, limit: readMax })
    // The type is looked at first: other changes are not worth decoding.
    for (const stored of changes.filter(({ header }) => header(typeHeader) === started)) {
      const { at, message } = stored
      if (message.type === started && message.broadcast < first && at < before) found.push(message)
    }
    const last = changes.at(-1)
    if (last === undefined || changes.length < readMax || last.at >= before) break
    from = last.seq + 1
  }
  return found.sort((a, b) => b.broadcast - a.broadcast)
})
