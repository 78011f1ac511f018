// `bellcast audit --user USER`: which broadcasts could go to a user, what became of each push, what
// operators changed and looked at of the user, and moves and renewals of subscriptions.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { readSome, readsOfCommandMax, startedIn } from "#broadcasts/list.ts"
import { type ForUser, listForUser, pushesTo } from "#broadcasts/pushes.ts"
import { standingOf } from "#broadcasts/state.ts"
import { callerIn, publisherOf } from "#domain/broadcast.ts"
import { pushView } from "#gateway/broadcasts/pushes.ts"
import { makeReason, type Reason } from "#history/recipient.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { streams } from "#streams/index.ts"
import { filters, parseRegistration, subjects } from "#streams/subjects.ts"
import { channelToken, decodeToken, isDirect, type UserToken } from "#streams/tokens.ts"
import { demandBroadcast } from "./nats/broadcasts.ts"
import { printToUser } from "./nats/erased.ts"
import { userGiven } from "./nats/users.ts"
import { isoOf, nextBefore, printMore, printRows } from "./terminal/output.ts"

export interface Filters {
  readonly channel: Option.Option<string>
  readonly since: Option.Option<Date>
  readonly before: Option.Option<Date>
  /** Most broadcasts. */
  readonly limit: number
}

/**
 * Prints the pushes to a user: of one broadcast, or of those that the filters select. Without a
 * broadcast or channel also the changes, and what operators looked at.
 */
export const auditUser = Effect.fnUntraced(function* (
  given: string,
  broadcast: number | undefined,
  filters: Filters,
  json: boolean
) {
  const { user } = yield* userGiven(given)
  const now = (yield* readServerTime).serverMillis
  const { isMore, rows: found } = yield* broadcast === undefined
    ? selected(user, filters, now)
    : single(broadcast, user)
  const rows = (yield* Effect.forEach(found, yield* makeRows(user, now))).flat()
  if (broadcast !== undefined) return yield* printRows(json, rows, shown)
  const since = sinceOf(filters, now)
  yield* printToUser(json, rows, shown, { since, user })
  if (Option.isNone(filters.channel)) yield* printOthers(user, filters, now, json)
  const last = found.at(-1)?.origin.stored.at ?? 0
  if (isMore) yield* printMore(json, found.length, nextBefore(last, since))
})

/** Prints what operators changed and looked at. */
const printOthers = Effect.fnUntraced(function* (
  user: UserToken,
  filters: Filters,
  now: number,
  json: boolean
) {
  const since = Option.match(filters.since, { onNone: () => 0, onSome: Number })
  const before = Option.match(filters.before, { onNone: () => now, onSome: Number })
  const changes = yield* changesOf(user, since, before)
  if (changes.length > 0) yield* printRows(json, changes, shownChanges)
  const looks = yield* looksAt(user, since, before)
  if (looks.length > 0) yield* printRows(json, looks, shownLooks)
})

const single = Effect.fnUntraced(function* (broadcast: number, user: UserToken) {
  const origin = yield* demandBroadcast(broadcast)
  const standing = yield* standingOf(origin)
  return { isMore: false, rows: [{ origin, standing, pushes: yield* pushesTo(origin, user) }] }
})

/** LOG has broadcasts for years, WORK their pushes for some weeks after the start. */
const sinceOf = ({ since }: Filters, now: number): number =>
  Option.match(since, { onNone: () => now - streams.work.maxAgeMillis, onSome: Number })

/** The broadcasts that the filters select. `now`: milliseconds since the epoch. */
export const selected = Effect.fnUntraced(function* (
  user: UserToken,
  filters: Filters,
  now: number
) {
  const span = {
    since: sinceOf(filters, now),
    before: Option.getOrUndefined(filters.before)?.getTime(),
    changeReadsMax: readsOfCommandMax
  }
  const startedInSpan = yield* Effect.cached(startedIn(span))
  return yield* readSome(filters.limit, (behind: number | undefined, limit) =>
    listForUser(user, {
      ...span,
      startedInSpan,
      channel: Option.getOrUndefined(Option.map(filters.channel, channelToken)),
      limit: Math.min(limit, pageMax),
      behind,
      readMax
    })
  )
})

/** Broadcasts whose pushes are read at once. */
const pageMax = 50

/** Broadcasts that are read at once, in 48 MiB at most: a gateway has less room. */
const readMax = 1_000

/** Returns a function that makes the rows of a broadcast. `now`: milliseconds since the epoch. */
const makeRows = Effect.fnUntraced(function* (user: UserToken, now: number) {
  const whyNot = yield* makeReason(user, Number.MAX_SAFE_INTEGER)
  return Effect.fnUntraced(function* (found: ForUser) {
    const of = ofBroadcast(found)
    if (found.pushes.length > 0)
      return found.pushes.map((push): Row => ({ ...of, ...pushView(push) }))
    const reason = unsentFor(found, now) ?? unrecorded(found, yield* whyNot(found))
    return [{ ...of, outcome: "none", reason } satisfies Row]
  })
})

/** The broadcast, in a row of one that could go to a user. */
export const ofBroadcast = (found: ForUser): OfBroadcast => {
  const { origin, standing } = found
  const { header, seq } = origin.stored
  const started = startedOf(found)
  return {
    broadcast: seq,
    ...(started !== undefined && { started_at: started }),
    ...(!isDirect(origin.channel) && {
      channel: decodeToken(origin.channel) ?? origin.channel
    }),
    publisher: publisherOf(origin.source, header) ?? "",
    state: standing.state
  }
}

interface OfBroadcast {
  readonly broadcast: number
  /** Absent: it did not start. */
  readonly started_at?: number
  /** Absent: it went to several, or to users. */
  readonly channel?: string
  readonly publisher: string
  readonly state: string
}

/** A push as it is shown, or a broadcast without one. */
interface Row extends OfBroadcast, Omit<Partial<View>, "outcome"> {
  readonly outcome: View["outcome"] | "none"
}

type View = ReturnType<typeof pushView>

/** When a broadcast started; undefined: it did not, or not yet. */
const startedOf = ({ origin, standing }: ForUser): number | undefined => {
  if (standing.rejected !== undefined) return undefined
  return standing.schedule === undefined ? origin.stored.at : standing.schedule.startedAt
}

/** Why no push of a broadcast is known, whoever the user is; undefined: that rests on the user. */
const unsentFor = (found: ForUser, now: number): string | undefined => {
  const { progress, rejected, schedule, state } = found.standing
  if (state === "scheduled") return `not started yet, planned for ${schedule?.at}`
  if (rejected !== undefined) return "rejected"
  const started = startedOf(found)
  if (started === undefined) return "cancelled before its start"
  if (now - started > streams.work.maxAgeMillis) return "no longer stored"
  return progress === undefined ? "not planned yet" : undefined
}

/** Why a broadcast that was planned has no push to the user. */
const unrecorded = ({ origin, standing }: ForUser, { should, why }: Reason): string => {
  if (should === false) return why
  if (standing.progress?.finished !== true) return "no result yet"
  // WORK has the broadcast before as long as this one: its outcome says it.
  if (should === undefined && origin.source === "redrive") return redrivenWhy
  return should === undefined ? why : `${why}; no outcome is stored`
}

const redrivenWhy = "sent again to those alone whose push had failed"

const shown = {
  heading: [
    ...["BROADCAST", "STARTED", "CHANNEL", "STATE", "SUBSCRIPTION"],
    ...["OUTCOME", "STATUS", "REASON", "ATTEMPTS", "LAST ATTEMPT", "LOCALE"]
  ],
  cellsOf: (row: Row) => [
    ...[row.broadcast, isoOf(row.started_at), row.channel, row.state],
    ...[row.subscription?.slice(0, 12), row.outcome, row.status, row.reason, row.attempts],
    ...[isoOf(row.at), row.locale]
  ],
  none: "no such broadcast could go to this user"
}

/** All of them between two times (milliseconds since the epoch), the oldest first. */
const changesOf = Effect.fnUntraced(function* (user: UserToken, since: number, before: number) {
  const changes: Array<UserChange> = []
  const each = (stored: Stored) => {
    if (stored.at >= since && stored.at < before) changes.push(...changesIn(stored))
  }
  const wanted = [subjects.subscription(user), filters.registrationsOf(user), subjects.erased(user)]
  yield* (yield* EventLog).scan("log", wanted, each)
  return changes.sort((a, b) => a.at - b.at)
})

const changesIn = ({ at, header, message, subject }: Stored): ReadonlyArray<UserChange> => {
  if (message.type === "subscription.moved")
    return message.moved.map(({ id }) => ({ change: "moved away", at, subscription: id }))
  if (message.type === "user.erased") {
    const { by } = message
    return [{ change: "erased", at, ...(by !== undefined && { by }) }]
  }
  const by = callerIn(header)
  if (by === undefined) {
    const isRenewal = message.type === "subscription.put" && message.replaces?.renewal
    return isRenewal ? [{ change: "renewed", at, subscription: message.id }] : []
  }
  const of = { at, by }
  switch (message.type) {
    case "subscription.put":
      return [{ change: "restored", ...of, subscription: message.id }]
    case "subscription.delete":
      return message.removed.map(({ id }) => ({ change: "removed", ...of, subscription: id }))
    case "subscription.cleared":
      return [{ change: "suspension ended", ...of, subscription: message.id }]
    case "registration.put":
    case "registration.delete": {
      const place = parseRegistration(subject)
      const channel = place && decodeToken(place.channel)
      const change = message.type === "registration.put" ? "registered" : "unregistered"
      return [{ change, ...of, ...(channel !== undefined && { channel }) }]
    }
  }
  return []
}

interface UserChange {
  readonly change:
    | "restored"
    | "removed"
    | "suspension ended"
    | "registered"
    | "unregistered"
    | "moved away"
    | "renewed"
    | "erased"
  /** When NATS stored it: milliseconds since the epoch. */
  readonly at: number
  /** The id of the operator or of the site's server, or `operator` for a command. */
  readonly by?: string
  readonly subscription?: string
  readonly channel?: string
}

const shownChanges = {
  heading: ["CHANGE", "AT", "BY", "SUBSCRIPTION", "CHANNEL"],
  cellsOf: ({ at, by, change, channel, subscription }: UserChange) => [
    ...[change, new Date(at).toISOString(), by, subscription?.slice(0, 12), channel]
  ],
  none: ""
}

/** All that are stored of two times (milliseconds since the epoch), the oldest first. */
const looksAt = Effect.fnUntraced(function* (user: UserToken, since: number, before: number) {
  const looks: Array<Look> = []
  yield* (yield* EventLog).scan("work", [filters.looksAt(user)], ({ message }) => {
    if (message.type !== "look" || message.at < since || message.at >= before) return
    const { type: _, ...look } = message
    looks.push({ looked_at: look.broadcast === undefined ? "user" : "pushes", ...look })
  })
  return looks
})

interface Look {
  readonly looked_at: "user" | "pushes"
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The id of the operator. */
  readonly by: string
  readonly broadcast?: number
}

const shownLooks = {
  heading: ["LOOKED AT", "AT", "BY", "BROADCAST"],
  cellsOf: ({ at, broadcast, by, looked_at }: Look) => [
    ...[looked_at, new Date(at).toISOString(), by, broadcast]
  ],
  none: ""
}
