// Lists broadcasts from LOG, the newest first. No index is stored: LOG is read backwards, and after
// that those broadcasts that were accepted too early, but started in time.
import * as Effect from "effect/Effect"
import { startedIn } from "#broadcasts/started-in.ts"
import { type Origin, originIn, type Standing, standingsOf } from "#broadcasts/state.ts"
import { publisherOf } from "#domain/broadcast-publisher.ts"
import type { BroadcastState } from "#domain/broadcast-state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import type { ChannelToken } from "#streams/tokens.ts"

/** Broadcasts that are read at once: a message has at most 32 KiB. */
const readMaxDefault = 100
/** Reads of one list, in 9 MiB. A client goes on with the next page. */
const readsMax = 2

export interface Listed {
  readonly origin: Origin
  readonly standing: Standing
}

export interface Selection<E, R> {
  /** Undefined: broadcasts to several channels and to users, too. */
  readonly channel: ChannelToken | undefined
  /** At most so many. */
  readonly limit: number
  /** Only those of a lower id. Undefined: of any id. */
  readonly behind: number | undefined
  /** Only those that were stored or started at this time or later: milliseconds since the epoch. */
  readonly since: number | undefined
  /** Only those that were stored or started before this time. */
  readonly before: number | undefined
  /** Broadcasts that are read at once; absent: 100. */
  readonly readMax?: number
  /** Reads of changes that find what was accepted before `since`; absent: 10. */
  readonly changeReadsMax?: number
  /** `startedIn` the selection, for several lists with the same times. */
  readonly startedInSpan?: ReturnType<typeof startedIn>
  /** Undefined: any. */
  readonly publisher: string | undefined
  /** Undefined: any. */
  readonly state: BroadcastState | undefined
  /** Decides before the state of a broadcast is read. */
  readonly isShown: (origin: Origin) => Effect.Effect<boolean, E, R>
}

/** The broadcasts of some messages that are selected. */
const select = Effect.fnUntraced(function* <E, R>(
  found: ReadonlyArray<Stored>,
  { isShown, publisher, state }: Selection<E, R>
) {
  const origins = found
    .flatMap((stored) => originIn(stored) ?? [])
    .filter(
      ({ source, stored: { header } }) =>
        publisher === undefined || publisherOf(source, header) === publisher
    )
  const shown = yield* Effect.filter(origins, isShown, { concurrency: 16 })
  const standings = yield* standingsOf(shown)
  return shown.flatMap((origin, i): ReadonlyArray<Listed> => {
    const standing = standings[i]!
    return state === undefined || standing.state === state ? [{ origin, standing }] : []
  })
})

/** The sequence of the first message since a time; undefined: none follows. */
const firstSince = Effect.fnUntraced(function* (millis: number | undefined, none: number) {
  if (millis === undefined) return none
  return (yield* (yield* EventLog).firstSince("log", millis)) ?? Number.MAX_SAFE_INTEGER
})

/** Returns a function that reads the next `size` broadcasts before a sequence. */
const makeRead = Effect.fnUntraced(function* <E, R>(selection: Selection<E, R>) {
  const { channel } = selection
  const log = yield* EventLog
  const begin = yield* firstSince(selection.since, 1)
  const startedInSpan = selection.startedInSpan ?? (yield* Effect.cached(startedIn(selection)))
  const filter = channel === undefined ? filters.broadcasts : subjects.broadcast("*", channel)
  const startedOnly = Effect.fnUntraced(function* (before: number, size: number) {
    const wanted = (yield* startedInSpan).filter(
      (start) => start.broadcast < before && (channel === undefined || start.channel === channel)
    )
    const ids = wanted.slice(0, size).map(({ broadcast }) => broadcast)
    const read = yield* Effect.forEach(ids, (id) => log.at("log", id), { concurrency: 16 })
    // An operator may have erased some from LOG.
    return { ids, found: read.filter((stored) => stored !== undefined) }
  })
  return Effect.fnUntraced(function* (before: number, size: number) {
    const found = before > begin ? yield* log.newest("log", filter, { before, limit: size }) : []
    const recent = found.filter(({ seq }) => seq >= begin)
    const left = size - recent.length
    if (left === 0) return { found: recent, next: recent.at(-1)?.seq }
    const older = yield* startedOnly(before, left)
    const next = older.ids.length === left ? older.ids.at(-1) : undefined
    return { found: [...recent, ...older.found], next }
  })
})

/**
 * The selected broadcasts. `next`: the id from which the list goes on; undefined: it is complete.
 */
export const listBroadcasts = Effect.fnUntraced(function* <E, R>(selection: Selection<E, R>) {
  const { behind = Number.MAX_SAFE_INTEGER, limit, readMax = readMaxDefault } = selection
  const read = yield* makeRead(selection)
  const rows: Array<Listed> = []
  let before = Math.min(behind, yield* firstSince(selection.before, behind))
  // Most lists want what they read first: one more says whether others follow.
  let size = Math.min(limit + 1, readMax)
  for (let scanned = 0; scanned < readsMax * readMax; scanned += size, size = readMax) {
    const { found, next } = yield* read(before, size)
    rows.push(...(yield* select(found, selection)))
    if (rows.length > limit)
      return { rows: rows.slice(0, limit), next: rows[limit - 1]!.origin.stored.seq }
    if (next === undefined) return { rows, next }
    before = next
  }
  return { rows, next: before }
})
