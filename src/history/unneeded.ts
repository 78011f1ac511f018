// Finds what may go from LOG with an old message: the other messages of its subject, or of its
// broadcast, on which nothing rests either. Reads only.
import { isDeepStrictEqual } from "node:util"
import * as Effect from "effect/Effect"
import { type ChannelRests, unneededOfRegistration } from "#domain/history.ts"
import { unneededOfUser } from "#domain/list-history.ts"
import { isBegun } from "#domain/registration.ts"
import { endpointHash } from "#domain/subscription/owners.ts"
import { emptyList, isBlank, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { removedAt } from "#domain/subscription/tombstone.ts"
import type { NatsUnavailable } from "#nats/connection/errors.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import {
  parseBegun,
  parseRegistration,
  parseState,
  parseSubscription,
  parseSummed,
  subjects
} from "#streams/subjects.ts"
import type { ChannelToken, UserToken } from "#streams/tokens.ts"
import { beginOf, isUnnamed, leftChanges, ofBroadcast, type Summed } from "./broadcasts.ts"
import { factsAmong, readSome } from "./subject.ts"

/** Tombstones and ends of endpoints of a user that LOG does not say any more. */
export interface Forgotten {
  readonly user: UserToken
  /** Sequence of the last of the user's messages that were looked at. */
  readonly seq: number
  /** Ends of endpoints from this time on stay, in milliseconds since the epoch. */
  readonly before: number
  /** When each was removed, by id. */
  readonly removed: Readonly<Record<string, number>>
  /** The hashes of endpoints of which LOG does not say any more that they were the user's. */
  readonly endpoints: ReadonlyArray<string>
}

export interface Unneeded {
  readonly what: "subscriptions" | "registrations" | "broadcasts" | "rejections"
  /** In the order in which they may be deleted. */
  readonly messages: ReadonlyArray<Stored>
  /** There may be more: to be asked again with this message, or the next, once these are gone. */
  readonly again?: number
  /** The bucket loses these first. */
  readonly forgotten?: Forgotten
  /** A message first says what the counts of this channel rest on, up to this sequence. */
  readonly counted?: { readonly channel: ChannelToken; readonly upTo: number }
  /** The sum of these is stored first: until it is, nothing of this goes. */
  readonly summed?: Summed
}

/**
 * The messages that may go with an old one of LOG; undefined: none. Messages from `before` on stay,
 * in milliseconds since the epoch. `gone`: sequences to be taken as deleted.
 */
export const unneededWith = Effect.fnUntraced(function* (
  stored: Stored,
  before: number,
  gone?: ReadonlySet<number>
): Effect.fn.Return<Unneeded | undefined, NatsUnavailable, EventLog | Buckets> {
  const { message, subject } = stored
  const user = parseSubscription(subject)
  if (user !== undefined) return yield* ofUser(stored, user, before, gone)
  const place = parseRegistration(subject)
  if (place !== undefined) return yield* ofRegistration(stored, place.channel, before, gone)
  if (message.type === "broadcast.finished" || message.type === "broadcast.rejected")
    return yield* ofBroadcast({ end: stored, broadcast: message.broadcast }, before, gone)
  const channel = parseSummed(subject) ?? parseBegun(subject)
  if (channel !== undefined) return yield* ofCounts(stored, channel)
  const changed = parseState(subject)
  if (changed !== undefined) {
    const messages = yield* leftChanges(subject, changed, before)
    return messages && ({ what: "broadcasts", messages } satisfies Unneeded)
  }
  if (subject === subjects.part)
    return (yield* isUnnamed(stored)) ? { what: "broadcasts", messages: [stored] } : undefined
  if (message.type !== "command.rejected" && message.type !== "subscription.taken") return undefined
  const command = yield* (yield* EventLog).at("log", message.command)
  if (command !== undefined) return undefined
  return { what: "rejections", messages: [stored] } satisfies Unneeded
})

/** The messages of these sequences in their order, and then the facts about them. */
const withFacts = (
  messages: ReadonlyArray<Stored>,
  seqs: ReadonlyArray<number>,
  about: ReadonlyMap<number, ReadonlyArray<Stored>>,
  before: number
): ReadonlyArray<Stored> => {
  const bySeq = new Map(messages.map((each) => [each.seq, each]))
  return [
    ...seqs.map((seq) => bySeq.get(seq)!),
    ...seqs.flatMap((seq) => about.get(seq) ?? []).filter(({ at }) => at < before)
  ]
}

/**
 * Whether a put has the id that a gateway gives. With another one, its user keeps the endpoint
 * where the next put of the id has another endpoint.
 */
const hasOwnId = ({ message }: Stored): boolean =>
  message.type !== "subscription.put" || message.id === endpointHash(message.data.endpoint)

const ofUser = Effect.fnUntraced(function* (
  { seq, subject }: Stored,
  user: UserToken,
  before: number,
  gone: ReadonlySet<number> | undefined
) {
  const { isPart, messages: all } = yield* readSome(subject, gone)
  if (!all.every(hasOwnId)) return undefined
  const { about, ...facts } = yield* factsAmong(all)
  const unneededIn = (messages: ReadonlyArray<Stored>) => ({
    messages,
    ...unneededOfUser({ messages, ...facts, before, isPart })
  })
  const last = all.findLastIndex(({ message }) => message.type === "subscription.put")
  // A list begins with a put: of a part that ends with one, all before it may go.
  let found = unneededIn(isPart && last > 0 ? all.slice(0, last + 1) : all)
  if (found.seqs.length === 0 && found.messages !== all) found = unneededIn(all)
  const { forgotten, isMore, messages, seqs, whole } = found
  if (seqs.length === 0 || (!isPart && (yield* isOtherInBucket(user, whole)))) return undefined
  const removed = Object.fromEntries(forgotten.map((id) => [id, removedAt(whole.tombstones[id]!)]))
  const going = new Set(seqs)
  // The ids are the hashes of the endpoints.
  const idsOf = (puts: ReadonlyArray<Stored>) =>
    new Set(puts.flatMap(({ message }) => (message.type === "subscription.put" ? message.id : [])))
  const left = idsOf(messages.filter((each) => !going.has(each.seq)))
  const endpoints = [...idsOf(messages.filter((each) => going.has(each.seq)))]
  return {
    what: "subscriptions",
    messages: withFacts(messages, seqs, about, before),
    forgotten: {
      user,
      seq: whole.seq,
      before,
      removed,
      endpoints: endpoints.filter((id) => !left.has(id))
    },
    ...((isPart || isMore) && { again: seq })
  } satisfies Unneeded
})

/**
 * Whether the bucket has other subscriptions of a user than the user's messages say: another user
 * takes one at this moment.
 */
const isOtherInBucket = Effect.fnUntraced(function* (user: UserToken, whole: SubscriptionList) {
  const stored = yield* (yield* Buckets).get("subscriptions", keys.subscriptions(user))
  const list = stored?.value ?? emptyList
  // The bucket loses first what goes from LOG, and a crash may come in between.
  if (isBlank(list) && Object.keys(whole.subscriptions).length === 0) return false
  return !isDeepStrictEqual(list.subscriptions, whole.subscriptions)
})

const ofRegistration = Effect.fnUntraced(function* (
  { seq, subject }: Stored,
  channel: ChannelToken,
  before: number,
  gone: ReadonlySet<number> | undefined
) {
  const { isPart, messages } = yield* readSome(subject, gone)
  const { about, rejected } = yield* factsAmong(messages)
  const { countedUpTo, seqs } = unneededOfRegistration({
    messages,
    rejected,
    before,
    channel: yield* restsOf(channel)
  })
  if (seqs.length === 0) return undefined
  return {
    what: "registrations",
    messages: withFacts(messages, seqs, about, before),
    ...(isPart && { again: seq }),
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
