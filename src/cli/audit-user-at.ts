// `bellcast audit --user USER --at TIME`: which broadcasts up to a time this user should have got,
// on which devices, and why or why not. LOG says it for the whole history; what became of a push is
// in WORK, for some weeks.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ForUser } from "#broadcasts/pushes.ts"
import { readRecipients } from "#broadcasts/whole-broadcast.ts"
import { takes } from "#domain/subscription/subscription.ts"
import { demandInHistory, erasureOf, listsOf, type Moment, registrationsOf } from "#history/past.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { streams } from "#streams/index.ts"
import { subjects } from "#streams/subjects.ts"
import { type ChannelToken, decodeToken, type UserToken } from "#streams/tokens.ts"
import { type Filters, ofBroadcast, selected } from "./audit-user.ts"
import { erasedSince, printErased } from "./nats/erased.ts"
import { userGiven } from "./nats/users.ts"
import { isoOf, printMore, printRows } from "./terminal/output.ts"

/**
 * Prints the broadcasts before a moment that could go to a user, of the weeks before it unless the
 * filters say since when. Fails with NotInHistory where that is before the history.
 */
export const auditUserAt = Effect.fnUntraced(function* (
  given: string,
  moment: Moment,
  filters: Omit<Filters, "before">,
  json: boolean
) {
  const { user } = yield* userGiven(given)
  const { at, historyFrom } = moment
  const since = Option.match(filters.since, {
    onNone: () => Math.max(at - streams.work.maxAgeMillis, historyFrom),
    onSome: Number
  })
  yield* demandInHistory(since, historyFrom)
  const span = { since: Option.some(new Date(since)), before: Option.some(new Date(at)) }
  const { isMore, rows: found } = yield* selected(user, { ...filters, ...span }, at)
  const reason = yield* makeReason(user, moment)
  const rows = yield* Effect.forEach(found, (each) =>
    Effect.map(reason(each), (why) => ({ ...ofBroadcast(each), ...why, ...outcomesOf(each) }))
  )
  const isErased = (yield* erasedSince(user, since)) !== undefined
  if (rows.length > 0 || !isErased) yield* printRows(json, rows, shown)
  yield* printErased(json, user, since)
  if (isMore) yield* printMore(json, found.length)
})

/** The fates of the pushes, as far as WORK has them. */
const outcomesOf = ({ pushes }: ForUser) =>
  pushes.length === 0 ? {} : { outcomes: pushes.map(({ fate }) => fate) }

interface Reason {
  /** Whether a push should have gone to the user; absent: that is no longer stored. */
  readonly should?: boolean
  readonly why: string
  /** Ids of the subscriptions that it should have gone to; absent: `should` is. */
  readonly devices?: ReadonlyArray<string>
}

/** A redrive leaves out whom the broadcast before reached, which WORK says for some weeks. */
const redriven: Reason = {
  why: "sent again to those whose push had failed: who they were is no longer stored"
}

const erasedLater: Reason = { why: "the user was erased since" }

const not = (why: string): Reason => ({ should: false, why, devices: [] })

/** Returns a function that says whether and why a broadcast was for a user. */
const makeReason = Effect.fnUntraced(function* (user: UserToken, moment: Moment) {
  const log = yield* EventLog
  const erasure = yield* erasureOf(user)
  const listAt = yield* listsOf(user)
  const known = new Map<ChannelToken, Effect.Success<ReturnType<typeof registrationsOf>>>()
  const registered = Effect.fnUntraced(function* (channel: ChannelToken, seq: number) {
    const at = known.get(channel) ?? (yield* registrationsOf(channel, user))
    known.set(channel, at)
    return at(seq)
  })

  /** By what a broadcast that started at a sequence was for the user; undefined: by nothing. */
  const ground = Effect.fnUntraced(function* (
    channels: ReadonlyArray<ChannelToken>,
    isNamed: boolean,
    start: number
  ) {
    if (isNamed) return "the broadcast names the user"
    for (const channel of channels) {
      const began = yield* registered(channel, start)
      if (began === undefined) continue
      const since = new Date(began.at).toISOString()
      return `registered on ${decodeToken(channel) ?? channel} since ${since}`
    }
    return undefined
  })

  return Effect.fnUntraced(function* ({ origin, pushes, standing }: ForUser) {
    const start = yield* startOrWhy(log, { origin, standing }, moment)
    if (typeof start === "string") return not(start)
    const to = yield* readRecipients(log, origin.stored)
    if (to === undefined) return not("LOG lacks a part of the broadcast")
    if (to.except.includes(user)) return not("the broadcast excepts the user")
    if (erasure !== undefined && start <= erasure.seq) return erasedLater
    const why = yield* ground(to.channels, to.users.includes(user), start)
    if (why === undefined) return not("not registered when it started")
    const devices = Object.entries(listAt(start).subscriptions)
      .filter(([id, stored]) => takes(stored, start) && (to.subscription ?? id) === id)
      .map(([id]) => id)
    if (devices.length === 0) return not(`${why}, but had no device that takes pushes`)
    if (origin.source === "redrive" && pushes.length === 0) return redriven
    const end = standing.state === "cancelled" ? "; the broadcast was cancelled later" : ""
    return { should: true, why: `${why}${end}`, devices } satisfies Reason
  })
})

/** The sequence of LOG at which a broadcast started, or why it had not. */
const startOrWhy = Effect.fnUntraced(function* (
  log: EventLog["Service"],
  { origin, standing }: Pick<ForUser, "origin" | "standing">,
  { seq }: Moment
) {
  if (standing.rejected !== undefined) return "the broadcast was rejected"
  const start = yield* startSeqOf(log, origin.stored.seq, standing.schedule !== undefined)
  if (start === undefined) return "the broadcast did not start"
  return start > seq ? "the broadcast had not started then" : start
})

/** The sequence of LOG at which a broadcast started; undefined: it did not. */
const startSeqOf = Effect.fnUntraced(function* (
  { following }: EventLog["Service"],
  broadcast: number,
  isScheduled: boolean
) {
  if (!isScheduled) return broadcast
  for (let from = broadcast; ; ) {
    const changes = yield* following("log", subjects.state(broadcast), { from, limit: readAtOnce })
    const start = changes.find(({ message }) => message.type === "broadcast.started")
    if (start !== undefined || changes.length === 0) return start?.seq
    from = changes.at(-1)!.seq + 1
  }
})

/** Changes of one broadcast that are read at once: one with a payload has up to 32 KiB. */
const readAtOnce = 100

const shown = {
  heading: ["BROADCAST", "STARTED", "CHANNEL", "STATE", "SHOULD GET IT", "DEVICES", "WHY"],
  cellsOf: (
    row: ReturnType<typeof ofBroadcast> & Reason & { readonly outcomes?: ReadonlyArray<string> }
  ) => [
    ...[row.broadcast, isoOf(row.started_at), row.channel, row.state],
    ...[row.should === undefined ? undefined : row.should ? "yes" : "no"],
    ...[row.devices?.length, row.why]
  ],
  none: "no broadcasts to this user in that time"
}
