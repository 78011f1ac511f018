// Finds what may go from LOG with an old message: the other messages of its subject, or of its
// broadcast, on which nothing rests either. Reads only.
import { isDeepStrictEqual } from "node:util"
import * as Effect from "effect/Effect"
import { type Origin, originOf } from "#broadcasts/state.ts"
import { broadcastIdIn, payloadHeader, redrivesHeader } from "#domain/broadcast.ts"
import { draftOf } from "#domain/draft.ts"
import {
  type ChannelRests,
  foldListOf,
  type Past,
  unneededOfBroadcast,
  unneededOfRegistration,
  unneededOfUser
} from "#domain/history.ts"
import { isCounted } from "#domain/outcome.ts"
import { isBegun } from "#domain/registration.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { emptyList, isBlank, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { removedAt, type Taken, type Tombstone } from "#domain/subscription/tombstone.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import {
  filters,
  parseBegun,
  parseFinished,
  parseRegistration,
  parseState,
  parseSubscription,
  parseSummed,
  subjects
} from "#streams/subjects.ts"
import { type ChannelToken, isDirect, type UserToken } from "#streams/tokens.ts"
import { isUnnamed, leftChanges } from "./left.ts"

/** Tombstones and ends of endpoints of a user that LOG does not say any more. */
export interface Forgotten {
  readonly user: UserToken
  /** Sequence of the user's last message. */
  readonly seq: number
  /** When each was removed, by id. */
  readonly removed: Readonly<Record<string, number>>
  /** The hashes of endpoints of which LOG does not say any more that they were the user's. */
  readonly endpoints: ReadonlyArray<string>
}

/** Final counts that LOG has up to a sequence, of a channel that began at `since`. */
export interface Summed {
  readonly channel: ChannelToken
  readonly since: number
  readonly upTo: number
}

export interface Unneeded {
  readonly what: "subscriptions" | "registrations" | "broadcasts" | "rejections"
  /** In the order in which they may be deleted. */
  readonly messages: ReadonlyArray<Stored>
  /** The bucket loses these first. */
  readonly forgotten?: Forgotten
  /** A message first says what the counts of this channel rest on, up to this sequence. */
  readonly counted?: { readonly channel: ChannelToken; readonly upTo: number }
  /** The sum of these is stored first: until it is, nothing of this goes. */
  readonly summed?: Summed
}

/** Messages of one subject that are read. Of a longer subject everything stays. */
const messagesMax = 2_000
const readAtOnce = 500

/**
 * The messages that may go with an old one of LOG; undefined: none. Messages from `before` on stay,
 * in milliseconds since the epoch.
 */
export const unneededWith = Effect.fnUntraced(function* (
  stored: Stored,
  before: number
): Effect.fn.Return<Unneeded | undefined, NatsUnavailable, EventLog | Buckets> {
  const { message, subject } = stored
  const user = parseSubscription(subject)
  if (user !== undefined) return yield* ofUser(subject, user, before)
  const place = parseRegistration(subject)
  if (place !== undefined) return yield* ofRegistration(subject, place.channel, before)
  if (message.type === "broadcast.finished" || message.type === "broadcast.rejected")
    return yield* ofBroadcast(stored, message.broadcast, before)
  const channel = parseSummed(subject) ?? parseBegun(subject)
  if (channel !== undefined) return yield* ofCounts(stored, channel)
  const changed = parseState(subject)
  if (changed !== undefined) {
    const messages = yield* leftChanges(subject, changed, before)
    return messages && ({ what: "broadcasts", messages } satisfies Unneeded)
  }
  if (subject === subjects.part)
    return (yield* isUnnamed(stored)) ? { what: "broadcasts", messages: [stored] } : undefined
  if (message.type !== "command.rejected") return undefined
  const command = yield* (yield* EventLog).at("log", message.command)
  if (command !== undefined) return undefined
  return { what: "rejections", messages: [stored] } satisfies Unneeded
})

/** The messages of a subject; undefined: there are too many. */
const readSubject = Effect.fnUntraced(function* (subject: string) {
  const { following } = yield* EventLog
  const found: Array<Stored> = []
  for (let from = 1; found.length <= messagesMax; ) {
    const some = yield* following("log", subject, { from, limit: readAtOnce })
    found.push(...some)
    if (some.length === 0) return found
    from = some.at(-1)!.seq + 1
  }
  return undefined
})

/** The facts that the projector rejected some of these, by the sequence of the command. */
export const rejectedAmong = Effect.fnUntraced(function* (messages: ReadonlyArray<Past>) {
  const facts = yield* (yield* EventLog).lastOf(
    "log",
    messages.map(({ seq }) => subjects.rejected(seq))
  )
  return new Map(
    facts.flatMap((fact) =>
      fact.message.type === "command.rejected" ? [[fact.message.command, fact] as const] : []
    )
  )
})

/** The messages of these sequences in their order, and then the rejections of those among them. */
const withRejections = (
  messages: ReadonlyArray<Stored>,
  seqs: ReadonlyArray<number>,
  rejected: ReadonlyMap<number, Stored>,
  before: number
): ReadonlyArray<Stored> => [
  ...inOrder(messages, seqs),
  ...seqs.flatMap((seq) => rejected.get(seq) ?? []).filter(({ at }) => at < before)
]

/** The messages of these sequences, in their order. */
const inOrder = (messages: ReadonlyArray<Stored>, seqs: ReadonlyArray<number>) => {
  const bySeq = new Map(messages.map((each) => [each.seq, each]))
  return seqs.flatMap((seq) => bySeq.get(seq) ?? [])
}

/**
 * Whether a put has the id that a gateway gives. With another one, its user keeps the endpoint
 * where the next put of the id has another endpoint.
 */
const hasOwnId = ({ message }: Stored): boolean =>
  message.type !== "subscription.put" || message.id === endpointHash(message.data.endpoint)

const ofUser = Effect.fnUntraced(function* (subject: string, user: UserToken, before: number) {
  const messages = yield* readSubject(subject)
  if (messages === undefined || !messages.every(hasOwnId)) return undefined
  const rejected = yield* rejectedAmong(messages)
  const { forgotten, seqs, whole } = unneededOfUser({
    messages,
    rejected: new Set(rejected.keys()),
    before
  })
  if (seqs.length === 0 || (yield* restsOnOthers(user, { messages, whole }, before)))
    return undefined
  const removed = Object.fromEntries(forgotten.map((id) => [id, removedAt(whole.tombstones[id]!)]))
  // The ids are the hashes of the endpoints.
  const ids = messages.flatMap(({ message }) =>
    message.type === "subscription.put" ? [message.id] : []
  )
  const endpoints = seqs.length === messages.length ? [...new Set(ids)] : forgotten
  return {
    what: "subscriptions",
    messages: withRejections(messages, seqs, rejected, before),
    forgotten: { user, seq: whole.seq, removed, endpoints }
  } satisfies Unneeded
})

/**
 * Whether puts of two users of one browser rest on each other. A user who takes a browser back
 * before `subscription.moved` is stored begins a new generation, of which only the put of the other
 * user says why.
 */
const restsOnOthers = Effect.fnUntraced(function* (
  user: UserToken,
  { messages, whole }: { readonly messages: ReadonlyArray<Past>; readonly whole: SubscriptionList },
  before: number
) {
  const stored = yield* (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  const list = stored?.value ?? emptyList
  // The bucket loses first what goes from LOG, and a crash may come in between.
  if (isBlank(list) && Object.keys(whole.subscriptions).length === 0) return false
  if (!isDeepStrictEqual(list.subscriptions, whole.subscriptions)) return true
  const lost = messages.flatMap(({ message }) =>
    message.type === "subscription.moved" ? message.moved : []
  )
  for (const { generation, id } of lost) {
    const tombstone = list.tombstones[id]
    const former = whole.tombstones[id]
    if (tombstone === undefined && former !== undefined && removedAt(former) < before) continue
    if (!isTaken(tombstone) || tombstone.generation !== generation) return true
    if (yield* hadBefore(id, tombstone.moved)) return true
  }
  return false
})

const isTaken = (tombstone: Tombstone | undefined): tombstone is Tombstone & Taken =>
  typeof tombstone === "object" && "moved" in tombstone

/** Whether the user of a put had the same browser before it, by the messages of that user. */
const hadBefore = Effect.fnUntraced(function* (id: string, seq: number) {
  const put = yield* (yield* EventLog).at("log", seq)
  const messages = put === undefined ? [] : yield* readSubject(put.subject)
  if (messages === undefined) return true
  const earlier = messages.filter((each) => each.seq < seq)
  const fold = foldListOf(new Set((yield* rejectedAmong(earlier)).keys()))
  return Object.hasOwn(earlier.reduce(fold, emptyList).subscriptions, id)
})

const ofRegistration = Effect.fnUntraced(function* (
  subject: string,
  channel: ChannelToken,
  before: number
) {
  const messages = yield* readSubject(subject)
  if (messages === undefined) return undefined
  const rejected = yield* rejectedAmong(messages)
  const { countedUpTo, seqs } = unneededOfRegistration({
    messages,
    rejected: new Set(rejected.keys()),
    before,
    channel: yield* restsOf(channel)
  })
  if (seqs.length === 0) return undefined
  return {
    what: "registrations",
    messages: withRejections(messages, seqs, rejected, before),
    ...(countedUpTo > 0 && { counted: { channel, upTo: countedUpTo } })
  } satisfies Unneeded
})

/** The messages that the counts of a channel rest on. */
const restsOf = Effect.fnUntraced(function* (channel: ChannelToken) {
  const { get } = yield* Buckets
  const counts = (yield* get("channels", keys.channelRegistrations(channel)))?.value
  const begin = (yield* get("channels", keys.channelBegin(channel)))?.value
  const rests: ChannelRests =
    isBegun(counts, begin) && counts.registrations > 0
      ? { since: counts.since, changed: counts.seq }
      : { since: Number.POSITIVE_INFINITY, changed: 0 }
  return rests
})

/**
 * A broadcast that ended, and the one before that it redrives: that one may have stayed for it
 * alone. `going`: broadcasts that go anyway.
 */
const ofBroadcast = Effect.fnUntraced(function* (end: Stored, broadcast: number, before: number) {
  const messages: Array<Stored> = []
  const going = new Set<number>()
  /** Up to the last of the final counts: a redrive is on the channel of what it redrives. */
  let summed: Summed | undefined
  let next: { readonly end: Stored; readonly broadcast: number } | undefined = { end, broadcast }
  while (next !== undefined) {
    const found: Ended | undefined = yield* ended(next.end, next.broadcast, before, going)
    if (found === undefined) break
    messages.push(...found.messages)
    going.add(next.broadcast)
    if ((found.summed?.upTo ?? 0) > (summed?.upTo ?? 0)) summed = found.summed
    next = found.former
  }
  if (messages.length === 0) return undefined
  return {
    what: "broadcasts",
    messages,
    ...(summed !== undefined && { summed })
  } satisfies Unneeded
})

interface Ended {
  readonly messages: ReadonlyArray<Stored>
  readonly summed: Summed | undefined
  readonly former: { readonly end: Stored; readonly broadcast: number } | undefined
}

const ended = Effect.fnUntraced(function* (
  end: Stored,
  broadcast: number,
  before: number,
  going: ReadonlySet<number>
) {
  const changes = yield* readSubject(subjects.state(broadcast))
  const origin = yield* originOf(broadcast)
  if (changes === undefined) return undefined
  if (origin === undefined) return endAlone(changes, end, before)
  if ((yield* isDraftLeft(origin.stored)) || (yield* isInWork(origin.channel, broadcast)))
    return undefined
  const named = [origin.stored, ...changes].flatMap(({ message }) =>
    "parts" in message ? (message.parts ?? []) : []
  )
  const rests = new Set([...named, ...changes.map(({ seq }) => seq)])
  if (rests.size > 0 && (yield* isRedriven(origin, rests, going))) return undefined
  const parts = yield* partsAt(named)
  const seqs = unneededOfBroadcast({ origin: origin.stored, parts, changes, end, before })
  if (seqs.length === 0) return undefined
  const found: Ended = {
    messages: inOrder([origin.stored, ...parts, ...changes, end], seqs),
    summed: yield* summedWith(origin.channel, end),
    former: yield* formerOf(origin)
  }
  return found
})

/**
 * The final counts of a broadcast to an erased user alone, of which an erasure leaves no more but
 * the last change of its state.
 */
const endAlone = (
  changes: ReadonlyArray<Stored>,
  end: Stored,
  before: number
): Ended | undefined => {
  const channel = parseFinished(end.subject)?.channel
  const messages = [...changes, end]
  const isLeft =
    channel !== undefined && isDirect(channel) && messages.every(({ at }) => at < before)
  return isLeft ? { messages, summed: undefined, former: undefined } : undefined
}

/** Whether LOG still has the form of the draft that a broadcast was: without it, it is a draft. */
const isDraftLeft = Effect.fnUntraced(function* ({ header }: Stored) {
  const draft = draftOf(header)
  if (draft === undefined) return false
  const last = yield* (yield* EventLog).last("log", subjects.draft(draft.id))
  // A later form is another draft of this id, which this broadcast does not end.
  return last !== undefined && last.seq <= draft.seq
})

/** Whether WORK has the plan of a broadcast, or outcomes. */
export const isInWork = Effect.fnUntraced(function* (channel: ChannelToken, broadcast: number) {
  const { following, last } = yield* EventLog
  if ((yield* last("work", subjects.plan(channel, broadcast))) !== undefined) return true
  const outcomes = filters.outcomesIn(channel, broadcast)
  return (yield* following("work", outcomes, { from: 1, limit: 1 })).length > 0
})

/** Whether a later redrive rests on parts or changes of a broadcast. */
const isRedriven = Effect.fnUntraced(function* (
  { channel, stored }: Origin,
  rests: ReadonlySet<number>,
  going: ReadonlySet<number>
) {
  const { following } = yield* EventLog
  const subject = subjects.broadcast("redrive", channel)
  for (let from = stored.seq + 1; ; ) {
    const some = yield* following("log", subject, { from, limit: readAtOnce })
    for (const { header, message, seq } of some) {
      if (going.has(seq)) continue
      const parts = "parts" in message ? (message.parts ?? []) : []
      if ([...parts, Number(header(payloadHeader))].some((each) => rests.has(each))) return true
    }
    if (some.length === 0) return false
    from = some.at(-1)!.seq + 1
  }
})

/** The parts of a broadcast, as far as LOG has them before it or a change of it. */
const partsAt = Effect.fnUntraced(function* (sequences: ReadonlyArray<number>) {
  const log = yield* EventLog
  const found = yield* Effect.forEach(new Set(sequences), (seq) => log.at("log", seq))
  return found.flatMap((each) => (each?.subject === subjects.part ? [each] : []))
})

/** The present begin of a channel; undefined: nobody is registered. */
const beginOf = Effect.fnUntraced(function* (channel: ChannelToken) {
  const begin = yield* (yield* Buckets).get("channels", keys.channelBegin(channel))
  return begin?.value.since
})

/** The final counts up to these; undefined: these are no term of the pushes of a channel. */
const summedWith = Effect.fnUntraced(function* (channel: ChannelToken, { message, seq }: Stored) {
  if (isDirect(channel) || message.type !== "broadcast.finished") return undefined
  const since = yield* beginOf(channel)
  if (since === undefined || !isCounted(message, since)) return undefined
  return { channel, since, upTo: seq } satisfies Summed
})

/**
 * The messages that say since when a channel counts, and the sum of its final counts, go once the
 * channel has begun anew, or nobody is registered.
 */
const ofCounts = Effect.fnUntraced(function* (stored: Stored, channel: ChannelToken) {
  const { message } = stored
  if (message.type !== "channel.summed" && message.type !== "channel.begun") return undefined
  if (message.since === (yield* beginOf(channel))) return undefined
  const what = message.type === "channel.summed" ? "broadcasts" : "registrations"
  return { what, messages: [stored] } satisfies Unneeded
})

/** The broadcast that another one redrives, with its end. */
const formerOf = Effect.fnUntraced(function* ({ channel, source, stored }: Origin) {
  const broadcast = source === "redrive" ? broadcastIdIn(stored.header(redrivesHeader) ?? "") : 0
  if (!broadcast) return undefined
  const end = yield* (yield* EventLog).last("log", subjects.finished(channel, broadcast))
  return end && { end, broadcast }
})
