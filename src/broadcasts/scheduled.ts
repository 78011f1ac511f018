// The broadcasts that wait for their start.
import * as Effect from "effect/Effect"
import { type Origin, originIn, originOf, standingsOf } from "#broadcasts/state.ts"
import { laterStart } from "#domain/broadcast-start.ts"
import { changeIn, stateAfter } from "#domain/broadcast-state.ts"
import { Nats } from "#nats/connection/connection.ts"
import { unavailable } from "#nats/connection/errors.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { consumerInfo } from "#nats/stream/info.ts"
import { streams } from "#streams/index.ts"
import { filters, parseState } from "#streams/subjects.ts"

/** Broadcasts that are read at once: a message has at most 32 KiB. */
const readMax = 100

/** Scheduled broadcasts that the planner may not have read: LOG may have no state of them yet. */
const unread = Effect.gen(function* () {
  const log = yield* EventLog
  const { consumers, name } = streams.log
  const info = yield* consumerInfo(yield* Nats, name, consumers.planner.name).pipe(
    Effect.mapError(unavailable("state of planner"))
  )
  const origins: Array<Origin> = []
  let from = (info?.ack_floor.stream_seq ?? 0) + 1
  while (true) {
    const found = yield* log.following("log", filters.broadcasts, { from, limit: readMax })
    const later = found.filter(({ at, header }) => laterStart(header, at) !== undefined)
    origins.push(...later.flatMap((stored) => originIn(stored) ?? []))
    if (found.length < readMax) break
    from = found.at(-1)!.seq + 1
  }
  const standings = yield* standingsOf(origins)
  return origins.filter((_, i) => standings[i]!.state === "scheduled")
})

/** Returns the broadcasts that wait for their start, the oldest first. */
export const scheduledBroadcasts = Effect.gen(function* () {
  // Read before the states, which a planner may append meanwhile: else one could be in neither.
  const found = new Map((yield* unread).map((origin) => [origin.stored.seq, origin]))
  const waiting = new Set<number>()
  yield* (yield* EventLog).replay("log", [filters.states], ({ message, subject }) => {
    const broadcast = parseState(subject)
    const change = changeIn(message)
    if (broadcast === undefined || change === undefined) return
    found.delete(broadcast)
    if (stateAfter(change) === "scheduled") waiting.add(broadcast)
    else waiting.delete(broadcast)
  })
  for (const origin of yield* Effect.forEach([...waiting], originOf, { concurrency: 16 }))
    if (origin !== undefined) found.set(origin.stored.seq, origin)
  return [...found.values()].sort((a, b) => a.stored.seq - b.stored.seq)
})
