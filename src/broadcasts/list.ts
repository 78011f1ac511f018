// Lists broadcasts from LOG, the newest first. No index is stored: LOG is read backwards, and after
// that those broadcasts that were accepted too early, but started in time.
import * as Effect from "effect/Effect"
import { publisherOf } from "#domain/broadcast.ts"
import type { BroadcastScheduled, BroadcastState } from "#domain/broadcast-state.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { nameIn, type Stored } from "#nats/stream/stored.ts"
import { filters, subjects } from "#streams/subjects.ts"
import { type ChannelToken, channelsToken } from "#streams/tokens.ts"
import { type Origin, originIn, type Standing, standingsOf } from "./state.ts"
import { readRecipients } from "./whole-broadcast.ts"

/** Broadcasts that are read at once: a message has at most 32 KiB. */
const readMaxDefault = 100
/** Reads of one list, in 9 MiB. A client goes on with the next page. */
const readsMax = 2

/** Changes of states that are read at once: one with a payload has up to 32 KiB. */
const changesMax = 100
/** Reads of one span, in 32 MiB. */
const changeReadsMaxDefault = 10
/** Reads of a command, one after the other: 100,000 changes. */
export const readsOfCommandMax = 1_000
const started = "broadcast.started"

export interface Listed {
  readonly origin: Origin
  readonly standing: Standing
}

export interface Selection<E, R> {
  /** Undefined: of all channels, and those to several channels and to users, too. */
  readonly channel: ChannelToken | undefined
  /** With `channel`: those to several channels that name it, too. */
  readonly withNamed?: boolean
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
  { channel, isShown, publisher, state }: Selection<E, R>
) {
  const log = yield* EventLog
  const of = found
    .flatMap((stored) => originIn(stored) ?? [])
    .filter(
      ({ source, stored: { header } }) =>
        publisher === undefined || publisherOf(source, header) === publisher
    )
  const origins = yield* Effect.filter(
    of,
    (origin) =>
      channel === undefined || origin.channel === channel
        ? Effect.succeed(true)
        : names(log, origin, channel),
    { concurrency: 16 }
  )
  const shown = yield* Effect.filter(origins, isShown, { concurrency: 16 })
  const standings = yield* standingsOf(shown)
  return shown.flatMap((origin, i): ReadonlyArray<Listed> => {
    const standing = standings[i]!
    return state === undefined || standing.state === state ? [{ origin, standing }] : []
  })
})

/** Whether a broadcast to several channels names this one. They stand before users. */
const names = (log: EventLog["Service"], { stored }: Origin, channel: ChannelToken) =>
  readRecipients(log, stored, ({ channels, except, users }) =>
    Effect.succeed(!channels.includes(channel) && users.length + except.length === 0)
  ).pipe(Effect.map((to) => to?.channels.includes(channel) ?? false))

/** The sequence of the first message since a time; undefined: none follows. */
const firstSince = Effect.fnUntraced(function* (millis: number | undefined, none: number) {
  if (millis === undefined) return none
  return (yield* (yield* EventLog).firstSince("log", millis)) ?? Number.MAX_SAFE_INTEGER
})

/** Returns a function that reads the next `size` broadcasts before a sequence. */
const makeRead = Effect.fnUntraced(function* <E, R>(selection: Selection<E, R>) {
  const { channel, withNamed = false } = selection
  const log = yield* EventLog
  const begin = yield* firstSince(selection.since, 1)
  const startedInSpan = selection.startedInSpan ?? (yield* Effect.cached(startedIn(selection)))
  const places = channel === undefined ? [] : [channel, ...(withNamed ? [channelsToken] : [])]
  const wanted =
    channel === undefined
      ? [filters.broadcasts]
      : places.map((place) => subjects.broadcast("*", place))
  const newest = Effect.fnUntraced(function* (before: number, size: number) {
    const read = (filter: string) => log.newest("log", filter, { before, limit: size })
    const lists = yield* Effect.forEach(wanted, read, { concurrency: "unbounded" })
    return lists
      .flat()
      .sort((a, b) => b.seq - a.seq)
      .slice(0, size)
  })
  const startedOnly = Effect.fnUntraced(function* (before: number, size: number) {
    const starts = (yield* startedInSpan).filter(
      (start) =>
        start.broadcast < before &&
        (channel === undefined || places.some((place) => place === start.channel))
    )
    const ids = starts.slice(0, size).map(({ broadcast }) => broadcast)
    const read = yield* Effect.forEach(ids, (id) => log.at("log", id), { concurrency: 16 })
    // An operator may have erased some from LOG.
    return { ids, found: read.filter((stored) => stored !== undefined) }
  })
  return Effect.fnUntraced(function* (before: number, size: number) {
    const found = before > begin ? yield* newest(before, size) : []
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
  changeReadsMax = changeReadsMaxDefault,
  since
}: Span) {
  const log = yield* EventLog
  const first = since === undefined ? undefined : yield* log.firstSince("log", since)
  if (since === undefined || first === undefined) return []
  const found: Array<typeof BroadcastScheduled.Type> = []
  let from = first
  for (let read = 0; read < changeReadsMax; read++) {
    const changes = yield* log.following("log", filters.states, { from, limit: changesMax })
    // The name is looked at first: other changes are not worth decoding.
    for (const stored of changes.filter((each) => nameIn(each) === started)) {
      const { at, message } = stored
      if (message.type === started && message.broadcast < first && at < before) found.push(message)
    }
    const last = changes.at(-1)
    if (last === undefined || changes.length < changesMax || last.at >= before) break
    from = last.seq + 1
  }
  return found.sort((a, b) => b.broadcast - a.broadcast)
})

interface Page<A, P> {
  readonly rows: ReadonlyArray<A>
  /** Where the list goes on; undefined: it is complete. */
  readonly next: P | undefined
}

/**
 * Reads page after page until there are `limit` rows, or all. `look` reads at most so many rows
 * from a place on, and may find fewer although the list goes on. `isMore`: more rows may follow.
 */
export const readSome = Effect.fnUntraced(function* <A, P, E, R>(
  limit: number,
  look: (from: P | undefined, limit: number) => Effect.Effect<Page<A, P>, E, R>
) {
  const rows: Array<A> = []
  let from: P | undefined
  do {
    const page = yield* look(from, limit - rows.length)
    for (const row of page.rows) rows.push(row)
    from = page.next
  } while (from !== undefined && rows.length < limit)
  return { rows, isMore: from !== undefined }
})

/** The rows of `readSome`. */
export const readOn = <A, P, E, R>(
  limit: number,
  look: (from: P | undefined, limit: number) => Effect.Effect<Page<A, P>, E, R>
) => Effect.map(readSome(limit, look), ({ rows }) => rows)
