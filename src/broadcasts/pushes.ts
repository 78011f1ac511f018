// The pushes of a broadcast with their last outcomes, in pages from WORK; the broadcasts that could
// go to one user, with the pushes to the user; and dead letters, the pushes that were given up.
import * as Effect from "effect/Effect"
import { mapInTurns } from "#clock/map-in-turns.ts"
import type { DeadLetter } from "#domain/job.ts"
import type { PushResult } from "#domain/outcome.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, parseRegistration, subjects } from "#streams/subjects.ts"
import {
  type ChannelToken,
  channelsToken,
  directToken,
  isDirect,
  shardOf,
  type UserToken
} from "#streams/tokens.ts"
import { type Listed, listBroadcasts, readOn, type Selection, startedIn } from "./list.ts"
import type { Origin } from "./state.ts"
import { readRecipients } from "./whole-broadcast.ts"

/** Outcomes of shards that are read at once: 1,024 pushes, in 200 KB. */
const messagesAtOnce = 16
/** Such reads of one page, which decodes them for about 100 ms. A client goes on with the next. */
const readsMax = 16

/** Broadcasts whose pushes are read at once. */
const readsAtOnce = 8
/** Most channels of a user that are listed one by one, at about ten requests each. */
const channelsMax = 20
const listsAtOnce = 4
/** Most joins and leaves of a user that are read to know the channels, in 200 KB. */
const commandsMax = 500
/** Pushes that are read at once: a user has fewer browsers. */
const pushesAtOnce = 100
/** Dead letters that are read at once, in 200 KB. */
const lettersMax = 500
/** Dead letters of a page. They are decoded for about 200 ms, in turns. */
const letterPageMax = 20 * lettersMax

/** The last outcome of one push. */
export type Push = Omit<PushResult, "at" | "attempt" | "former" | "nextAt" | "until"> & {
  readonly attempts: number
}

export const pushOf = (result: PushResult): Push => {
  const { at: _, attempt: attempts, former: __, nextAt: ___, until: ____, ...rest } = result
  return { ...rest, attempts }
}

/** The place of a push: the sequence of its first outcome in WORK, and its place therein. */
interface PushPlace {
  readonly seq: number
  readonly i: number
}

/** The first place. */
const firstPush: PushPlace = { seq: 1, i: 0 }

interface PushSelection {
  /** Undefined: those of all users. */
  readonly user: UserToken | undefined
  /** The place at which the page begins. */
  readonly from: PushPlace
  /** At most so many. */
  readonly limit: number
  readonly isWanted: (result: PushResult) => boolean
}

interface Found {
  readonly place: PushPlace
  readonly result: PushResult
}

const resultsIn = ({ message, seq }: Stored): ReadonlyArray<Found> =>
  message.type === "outcome"
    ? message.results.map((result, i) => ({ place: { seq, i }, result }))
    : []

/** The outcomes of the shards with the pushes: of all, where WORK has dropped the plan already. */
const filterOf = Effect.fnUntraced(function* (
  { channel, stored: { seq } }: Origin,
  user: UserToken | undefined
) {
  const all = filters.shardOutcomesIn(channel, seq)
  if (user === undefined) return all
  const plan = (yield* (yield* EventLog).last("work", subjects.plan(channel, seq)))?.message
  return plan?.type === "plan"
    ? subjects.shardOutcome(channel, seq, shardOf(user, plan.depth))
    : all
})

/** A push that was tried again has later outcomes under a subject of its own. */
const withLast = Effect.fnUntraced(function* (
  { channel, stored }: Origin,
  found: ReadonlyArray<Found>
) {
  const log = yield* EventLog
  const subjectOf = ({ subscription, user }: PushResult) =>
    subjects.pushOutcome(channel, stored.seq, user as UserToken, subscription)
  const again = found.flatMap(({ result }) =>
    result.fate === "retrying" ? [subjectOf(result)] : []
  )
  const last = new Map<string, PushResult>()
  for (const { message, subject } of yield* log.lastOf("work", again))
    if (message.type === "outcome" && message.results[0] !== undefined)
      last.set(subject, message.results[0])
  return found.map(({ place, result }): Found => {
    const later = result.fate === "retrying" ? last.get(subjectOf(result)) : undefined
    return { place, result: later ?? result }
  })
})

/**
 * The selected pushes, in the order of their first outcomes. `next`: the place from which the list
 * goes on; undefined: it is complete. What was stored in the last second may be missing.
 */
export const listPushes = Effect.fnUntraced(function* (
  origin: Origin,
  { from: begin, isWanted, limit, user }: PushSelection
) {
  const log = yield* EventLog
  const rows: Array<PushResult> = []
  const filter = yield* filterOf(origin, user)
  let from = begin
  for (let reads = 0; reads < readsMax; reads++) {
    const bounds = { from: from.seq, limit: messagesAtOnce }
    const messages = yield* log.following("work", filter, bounds)
    // Most messages of a shard do not name the user, and are not decoded.
    const named = messages.filter(({ text }) => user === undefined || text.includes(user))
    const read = (yield* mapInTurns(named, resultsIn)).flat()
    const rest = read.filter(
      ({ place: { i, seq }, result }) =>
        (seq > from.seq || i >= from.i) && (user === undefined || result.user === user)
    )
    for (const { place, result } of yield* withLast(origin, rest)) {
      if (!isWanted(result)) continue
      if (rows.length === limit) return { rows, next: place }
      rows.push(result)
    }
    if (messages.length < messagesAtOnce) return { rows, next: undefined }
    from = { seq: messages.at(-1)!.seq + 1, i: 0 }
  }
  return { rows, next: from }
})

export interface ForUser extends Listed {
  readonly pushes: ReadonlyArray<PushResult>
}

/**
 * Whether a broadcast names the user, or a channel that the user ever joined: with a request for
 * each new set of channels, where pushes would need one for each broadcast. With `wanted`, the
 * broadcast must also go to this channel.
 */
const makeMayReach = (user: UserToken, wanted: ChannelToken | undefined) => {
  const known = new Map<string, boolean>()
  return Effect.fnUntraced(function* ({ channel, stored }: Origin) {
    const log = yield* EventLog
    // The body of a broadcast to one channel is not decoded.
    const isPlain = !isDirect(channel)
    const to = isPlain ? undefined : yield* readRecipients(log, stored)
    const channels = isPlain ? [channel] : (to?.channels ?? [])
    if (wanted !== undefined && !channels.includes(wanted)) return false
    if (to?.users.includes(user)) return true
    const place = channels.join()
    const found = known.get(place)
    if (found !== undefined) return found
    const joins = channels.map((each) => subjects.registration(each, user))
    const isMember = (yield* log.lastOf("log", joins)).length > 0
    known.set(place, isMember)
    return isMember
  })
}

/** The pushes of a broadcast to a user. */
export const pushesTo = (origin: Origin, user: UserToken) =>
  readOn(Number.POSITIVE_INFINITY, (from: PushPlace | undefined) =>
    listPushes(origin, {
      user,
      from: from ?? firstPush,
      limit: pushesAtOnce,
      isWanted: () => true
    })
  )

/** The channels that a user ever joined; undefined: too many for a list of each. */
const everJoined = Effect.fnUntraced(function* (user: UserToken) {
  const bounds = { from: 1, limit: commandsMax }
  const found = yield* (yield* EventLog).following("log", filters.registrationsOf(user), bounds)
  const channels = new Set(
    found.flatMap(({ subject }) => parseRegistration(subject)?.channel ?? [])
  )
  return found.length < commandsMax && channels.size <= channelsMax ? channels : undefined
})

interface ByUser extends Omit<Selection<never, never>, "isShown" | "publisher" | "state"> {
  /** No further page is wanted: this one has what each list found, however far it was read. */
  readonly isLast?: boolean
}

/** The places in which broadcasts to a user are: a channel each, or all of them. */
const placesFor = Effect.fnUntraced(function* (user: UserToken, { channel }: ByUser) {
  if (channel !== undefined) return [channelsToken, channel]
  const joined = yield* everJoined(user)
  return joined === undefined ? [undefined] : [directToken, channelsToken, ...joined]
})

/** The newest rows of several lists, of which each goes on from its `next`. */
const merged = (
  lists: ReadonlyArray<{ readonly rows: ReadonlyArray<Listed>; readonly next: number | undefined }>,
  { isLast = false, limit }: Pick<ByUser, "isLast" | "limit">
) => {
  // A list says nothing of what is behind its `next`.
  const end = isLast ? 0 : Math.max(...lists.map(({ next = 0 }) => next))
  const rows = lists
    .flatMap((list) => list.rows)
    .filter(({ origin }) => origin.stored.seq >= end)
    .sort((a, b) => b.origin.stored.seq - a.origin.stored.seq)
  return rows.length > limit
    ? { rows: rows.slice(0, limit), next: rows[limit - 1]!.origin.stored.seq }
    : { rows, next: end > 0 ? end : undefined }
}

/**
 * A page of the broadcasts that could go to a user, the newest first. `next`: the id from which the
 * list goes on; undefined: it is complete. No index is stored: the outcomes of a shard have one
 * subject, and the shard follows from the user.
 */
export const listForUser = Effect.fnUntraced(function* (user: UserToken, selection: ByUser) {
  const isShown = makeMayReach(user, selection.channel)
  const startedInSpan = selection.startedInSpan ?? (yield* Effect.cached(startedIn(selection)))
  const all = { ...selection, startedInSpan, publisher: undefined, state: undefined, isShown }
  const lists = yield* Effect.forEach(
    yield* placesFor(user, selection),
    (channel) => listBroadcasts({ ...all, channel }),
    { concurrency: listsAtOnce }
  )
  const { next, rows } = merged(lists, selection)
  const found = yield* Effect.forEach(
    rows,
    (listed) =>
      Effect.map(pushesTo(listed.origin, user), (pushes): ForUser => ({ ...listed, pushes })),
    { concurrency: readsAtOnce }
  )
  return { rows: found, next }
})

const lettersIn = ({ message }: Stored): ReadonlyArray<DeadLetter> =>
  message.type === "dead" ? [message] : []

/**
 * Dead letters of a broadcast, or of all, the oldest first: those in WORK from the sequence `from`
 * on. `next`: from which the list goes on; undefined: it is complete.
 */
export const listDeadLetters = Effect.fnUntraced(function* (
  broadcast: number | undefined,
  from: number
) {
  const log = yield* EventLog
  const filter = broadcast === undefined ? filters.deadLetters : filters.deadLettersOf(broadcast)
  const rows: Array<DeadLetter> = []
  let next = from
  for (let read = 0; read < letterPageMax; read += lettersMax) {
    const messages = yield* log.following("work", filter, { from: next, limit: lettersMax })
    rows.push(...(yield* mapInTurns(messages, lettersIn)).flat())
    if (messages.length < lettersMax) return { rows, next: undefined }
    next = messages.at(-1)!.seq + 1
  }
  return { rows, next }
})
