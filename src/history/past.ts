// LOG as it was at an earlier moment of its history: the subscriptions and registrations of a
// user, the members of a channel, and who may publish or register there. Reads without a consumer,
// as auditors may.
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { endOfHistory, foldRegistrationOf } from "#domain/history.ts"
import { foldListOf } from "#domain/list-history.ts"
import {
  foldPublishers,
  isPublisherCommand,
  noPublishers,
  type Publishers
} from "#domain/publisher.ts"
import type { Registration } from "#domain/registration.ts"
import type { Marks } from "#domain/subscription/command.ts"
import { emptyList, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { streamState } from "#nats/admin/maintenance.ts"
import { makeDiskBuckets, NoScratch } from "#nats/kv/disk-buckets.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { batchBytesMax, batchMax } from "#nats/stream/read-direct.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { readServerTime } from "#nats/watch/server-time.ts"
import { streams } from "#streams/index.ts"
import {
  filters,
  parseErasure,
  parsePublisher,
  parseRegistration,
  subjects
} from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { readHistoryPlace } from "./place.ts"
import { factsAmong } from "./subject.ts"

const none: ReadonlySet<number> = new Set()

/** A time of which nothing can be said. `message` says why, and what to do. */
export class NotInHistory extends Schema.TaggedError<NotInHistory>()("NotInHistory", {
  message: Schema.String
}) {}

/** A moment of LOG. */
export interface Moment {
  /** The last message before it; 0: there was none. */
  readonly seq: number
  /** Milliseconds since the epoch. */
  readonly at: number
  /** Of this time on LOG has all that was true, in milliseconds since the epoch. */
  readonly historyFrom: number
}

/** All of LOG up to this message. */
type Cut = Pick<Moment, "seq">

/**
 * The moment of a time, in milliseconds since the epoch. `days`: how long the history is. Fails
 * with NotInHistory for a time to come, and for one before the history or before LOG.
 */
export const momentAt = Effect.fnUntraced(function* (at: number, days: number) {
  const { firstSince } = yield* EventLog
  const now = (yield* readServerTime).serverMillis
  if (at > now)
    return yield* new NotInHistory({ message: `${new Date(at).toISOString()} is to come` })
  const deleted = (yield* readHistoryPlace).historyFrom
  const historyFrom = Math.max(endOfHistory(now, days), deleted)
  yield* demandInHistory(at, historyFrom)
  const { begunAt = now, lastSeq = 0 } = (yield* streamState(streams.log)) ?? {}
  // No message says what was true before: an empty answer would say that nobody was there.
  if (at < begunAt)
    return yield* new NotInHistory({
      message: `LOG begins at ${new Date(begunAt).toISOString()}: give that time or a later one`
    })
  const seq = ((yield* firstSince("log", at)) ?? lastSeq + 1) - 1
  const moment: Moment = { seq, at, historyFrom }
  return moment
})

/** Fails with NotInHistory for a time before the history. */
export const demandInHistory = (at: number, historyFrom: number) =>
  at >= historyFrom
    ? Effect.void
    : Effect.fail(
        new NotInHistory({
          message:
            `${new Date(at).toISOString()} is before the history, of which BELLCAST_HISTORY_DAYS ` +
            `says how long it is: give ${new Date(historyFrom).toISOString()} or later`
        })
      )

/** How many users were erased since a moment, or are now: LOG lacks what was true of them. */
export const erasedSince = Effect.fnUntraced(function* ({ seq }: Cut) {
  const users = new Set<UserToken>()
  const wanted = [filters.erased, filters.erases]
  yield* (yield* EventLog).scan("log", wanted, ({ message, seq: at, subject }) => {
    const user = parseErasure(subject)
    if (user === undefined) return
    if (at > seq || message.type === "user.erase") users.add(user)
  })
  return users.size
})

/** An erasure. LOG lacks what was true of the user before `seq`, unless the user came back. */
export interface Erasure {
  /** Of the command that asked for it. */
  readonly seq: number
  /** When it was done, or asked for while it is under way; in milliseconds since the epoch. */
  readonly at: number
  readonly isDone: boolean
}

/** The last erasure of a user; undefined: there was none. */
export const erasureOf = Effect.fnUntraced(function* (user: UserToken) {
  const { last } = yield* EventLog
  const asked = yield* last("log", subjects.erase(user))
  if (asked !== undefined) return { seq: asked.seq, at: asked.at, isDone: false } satisfies Erasure
  const fact = yield* last("log", subjects.erased(user))
  if (fact?.message.type !== "user.erased") return undefined
  return { seq: fact.message.command, at: fact.at, isDone: true } satisfies Erasure
})

/** When a user was erased after a moment, in milliseconds since the epoch. */
export const erasedAfter = (user: UserToken, { seq }: Cut) =>
  Effect.map(erasureOf(user), (erasure) =>
    erasure !== undefined && erasure.seq > seq ? erasure.at : undefined
  )

/** All messages of a subject, and the facts about them. */
const readPast = Effect.fnUntraced(function* (subject: string) {
  const messages: Array<Stored> = []
  const rejected = new Set<number>()
  const marks = new Map<number, Marks>()
  const end = { seq: (yield* streamState(streams.log))?.lastSeq ?? 0 }
  yield* eachPart(subject, end, (part) =>
    Effect.gen(function* () {
      messages.push(...part)
      const facts = yield* factsAmong(part)
      for (const seq of facts.rejected) rejected.add(seq)
      for (const [seq, each] of facts.marks) marks.set(seq, each)
    })
  )
  return { messages, marks, rejected }
})

/**
 * Reads the messages of a user's subscriptions. Returns the list as it was after a message of LOG,
 * in order to be asked about several. A subscription that moved to another user is in both lists
 * from the put of the other one until the projector has recorded the move.
 */
export const listsOf = Effect.fnUntraced(function* (user: UserToken) {
  const { messages, ...facts } = yield* readPast(subjects.subscription(user))
  const fold = foldListOf(facts)
  return (seq: number): SubscriptionList =>
    messages.filter((each) => each.seq <= seq).reduce(fold, emptyList)
})

/** As `listsOf`: since which message the user was registered on a channel; undefined: not then. */
export const registrationsOf = Effect.fnUntraced(function* (
  channel: ChannelToken,
  user: UserToken
) {
  const { messages, rejected } = yield* readPast(subjects.registration(channel, user))
  const fold = foldRegistrationOf(rejected)
  return (seq: number): Stored | undefined => {
    const until = messages.filter((each) => each.seq <= seq)
    const registration = until.reduce<Registration | undefined>(fold, undefined)
    if (registration?.on !== true) return undefined
    return until.find((each) => each.seq === registration.since)
  }
})

/** Each message of a subject, or of several, up to a moment, in parts. Reads one part ahead. */
const eachPart = Effect.fnUntraced(function* <E, R>(
  filter: string,
  { seq }: Cut,
  each: (part: ReadonlyArray<Stored>) => Effect.Effect<void, E, R>
) {
  const { following } = yield* EventLog
  const bounds = { limit: batchMax, bytesMax: batchBytesMax }
  const read = (from: number) => Effect.forkChild(following("log", filter, { from, ...bounds }))
  for (let next = yield* read(1); ; ) {
    const found = yield* Fiber.join(next)
    const last = found.at(-1)?.seq ?? seq
    if (last < seq) next = yield* read(last + 1)
    yield* each(found.filter((stored) => stored.seq <= seq))
    if (last >= seq) return
  }
})

export interface Member {
  readonly user: UserToken
  /** The id of the user; absent: the message has none. */
  readonly id?: string
  /** Since when the user was registered, in milliseconds since the epoch. */
  readonly since: number
}

/** A registration as the file has it. */
type Kept = Registration & Omit<Member, "user" | "since"> & { readonly began: number }

/** A registration after one more of its messages; the same object: it did not change. */
const keptAfter = (
  before: Kept | undefined,
  stored: Stored,
  rejected: ReadonlySet<number>
): Kept => {
  const { at, message, seq } = stored
  const next = foldRegistrationOf(rejected)(before, stored)
  if (next === before) return before!
  const began = next.since === seq ? at : (before?.began ?? at)
  return { ...next, began, ...(message.type === "registration.put" && { id: message.user }) }
}

/**
 * The members of a channel at a moment: how many, and all of them in parts. They are in a temporary
 * file until the scope closes, so that a channel of any size needs the same memory: see
 * `ifRoom`.
 */
export const membersAt = Effect.fnUntraced(function* (channel: ChannelToken, moment: Cut) {
  const { following } = yield* EventLog
  const { after, entry, set } = yield* makeDiskBuckets
  const [rejection] = yield* following("log", filters.rejected, { from: 1, limit: 1 })
  let count = 0
  const keep = (stored: Stored, rejected: ReadonlySet<number>): void => {
    const user = parseRegistration(stored.subject)?.user
    if (user === undefined) return
    const found = entry("registrations", user)
    const before: Kept | undefined = found && JSON.parse(found.text)
    const next = keptAfter(before, stored, rejected)
    if (next === before) return
    count += Number(next.on) - Number(before?.on ?? false)
    set("registrations", user, JSON.stringify(next), found)
  }
  yield* eachPart(filters.registrationsIn(channel), moment, (part) =>
    Effect.gen(function* () {
      const rejected = rejection === undefined ? none : (yield* factsAmong(part)).rejected
      for (const stored of part) keep(stored, rejected)
    })
  )
  const parts = function* (): Generator<ReadonlyArray<Member>, void> {
    for (let last = 0; ; ) {
      const some = after("registrations", last)
      if (some.length === 0) return
      last = some.at(-1)!.revision
      yield some.flatMap(({ key, text }) => memberIn(key, JSON.parse(text)))
    }
  }
  return { count, parts }
})

const memberIn = (key: string, { began, id, on }: Kept): ReadonlyArray<Member> => {
  const user = key as UserToken
  return on ? [{ user, ...(id !== undefined && { id }), since: began }] : []
}

/** Fails with NotInHistory, instead of dying, where the temporary file of members has no room. */
export const ifRoom = <A, E, R>(reading: Effect.Effect<A, E, R>) =>
  Effect.catchDefect(reading, (defect) =>
    defect instanceof NoScratch
      ? Effect.fail(new NotInHistory({ message: defect.message }))
      : Effect.die(defect)
  )

/** The publishers and registrars that grants name for a channel; undefined: for each. */
export const grantsAt = Effect.fnUntraced(function* (
  channel: ChannelToken | undefined,
  moment: Cut
) {
  const channels = new Map<ChannelToken, Publishers>()
  const filter = channel === undefined ? filters.publishers : subjects.publisher(channel)
  yield* eachPart(filter, moment, (part) =>
    Effect.sync(() => {
      for (const { message, seq, subject } of part) {
        const place = parsePublisher(subject)
        if (place === undefined || !isPublisherCommand(message)) continue
        const before = channels.get(place) ?? noPublishers
        channels.set(place, foldPublishers(before, message, seq).publishers)
      }
    })
  )
  return channels
})

/** The channels that a user was registered on at a moment, with the message that began each. */
export const channelsOfUserAt = Effect.fnUntraced(function* (user: UserToken, moment: Cut) {
  const last = new Map<string, Registration>()
  const began = new Map<string, Stored>()
  yield* eachPart(filters.registrationsOf(user), moment, (part) =>
    Effect.gen(function* () {
      const fold = foldRegistrationOf((yield* factsAmong(part)).rejected)
      for (const stored of part) {
        const next = fold(last.get(stored.subject), stored)
        last.set(stored.subject, next)
        if (next.since === stored.seq) began.set(stored.subject, stored)
      }
    })
  )
  return [...last].flatMap(([subject, { on }]) => {
    const channel = parseRegistration(subject)?.channel
    return on && channel !== undefined ? [{ channel, since: began.get(subject)!.at }] : []
  })
})
