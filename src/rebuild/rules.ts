// The rules by which two values of an entry are the same: if the service shows the same by both.
// Each rule below says what may differ from LOG and WORK, and why. Pure.
import { addPushes, type ChannelPushes, emptyPushes } from "#domain/outcome.ts"
import type { Progress } from "#domain/progress.ts"
import type {
  ChannelRegistrations,
  Registration,
  RegistrationCounts
} from "#domain/registration.ts"
import type { EndpointOwners } from "#domain/subscription/owners.ts"
import { isBlank, type SubscriptionList } from "#domain/subscription/subscription.ts"
import { removedAt, renewableMillisMax } from "#domain/subscription/tombstone.ts"
import {
  type BucketName,
  channelOfBegin,
  channelOfKey,
  isEndpointOwners
} from "#streams/buckets.ts"
import type { ChannelToken } from "#streams/tokens.ts"
import { decodeToken } from "#streams/tokens.ts"
import type { EntryName } from "./reading-fold.ts"

/** Facts that the rules need beside a value. */
export interface Beside {
  /**
   * First message of LOG in the last hour: a registration that ended before may be forgotten, or
   * not yet.
   */
  readonly keptFrom: number
  /** Whether LOG lacks messages of users who were erased. */
  readonly areErased: boolean
  /** The sums that expired broadcasts add to the pushes of a channel. */
  readonly expired: ReadonlyMap<ChannelToken, ChannelPushes>
  /** First message of LOG in the shortest history: of earlier ones LOG may lack some, or not. */
  readonly historyFrom: number
  /** When the shortest history begins, and what time it is: milliseconds since the epoch. */
  readonly historySince: number
  readonly now: number
  /** The `since` of the channel's begin, which `undefined` says it has not; absent: not known. */
  readonly begin?: { readonly since: number | undefined }
  /** The drafts that LOG has, each with the sequence of its form; absent: not known. */
  readonly drafts?: ReadonlySet<string>
}

/** Names a form of a draft. */
export const formName = (id: string, seq: number): string => `${id} ${seq}`

/** The part of an entry that must be the same, as a text; undefined: as if there were none. */
export const essenceOf = (
  name: EntryName,
  text: string | undefined,
  beside: Beside
): string | undefined => {
  try {
    const essence = ruled(name, text, beside)
    return essence && JSON.stringify(JSON.parse(essence, sorted))
  } catch {
    // Bellcast writes JSON alone, so this text is a difference as it is.
    return text
  }
}

/** Members come in the order in which a process learned of them. */
const sorted = (_: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value

const ruled = (
  { bucket, key }: EntryName,
  text: string | undefined,
  beside: Beside
): string | undefined => {
  if (text === undefined) return undefined
  if (bucket === "channels") return essenceOfChannel(key, text, beside)
  if (bucket === "registrations" && !key.startsWith("=users."))
    return essenceOfRegistration(text, beside)
  if (bucket === "drafts") return essenceOfDrafts(text, beside)
  if (bucket === "registrations") return essenceOfCounts(text, beside)
  if (bucket !== "subscriptions") return text
  return isEndpointOwners(key) ? essenceOfOwners(text, beside) : essenceOfList(text, beside)
}

/**
 * A page of several users has the sequence of its last message, which may be one of a user who was
 * erased, or an old one on which nothing rests.
 */
const changeSince = (seq: number, { areErased, historyFrom }: Beside) =>
  areErased || seq < historyFrom ? 0 : seq

const essenceOfCounts = (text: string, beside: Beside): string | undefined => {
  const { seq, users } = JSON.parse(text) as RegistrationCounts
  const changed = changeSince(seq, beside)
  const isNone = changed === 0 && Object.keys(users).length === 0
  return isNone ? undefined : JSON.stringify({ seq: changed, users })
}

/** Ends of endpoints count for 30 days, and stay until the page changes. */
const essenceOfOwners = (text: string, beside: Beside): string | undefined => {
  const { ended: all = {}, owners, seq } = JSON.parse(text) as EndpointOwners
  const changed = changeSince(seq, beside)
  const ended = Object.entries(all).filter(([, { at }]) => beside.now - at < renewableMillisMax)
  const isNone = changed === 0 && Object.keys(owners).length === 0 && ended.length === 0
  return isNone ? undefined : JSON.stringify({ seq: changed, owners, ended })
}

/**
 * The list of an erased user stays, as an empty one. Where the user took a subscription from
 * another one, LOG says no more to which generation pushes were waiting. And LOG may lack what
 * tombstones from before the history rest on, or have it still.
 */
const essenceOfList = (text: string, beside: Beside): string | undefined => {
  const { areErased, historySince } = beside
  const list = JSON.parse(text) as SubscriptionList
  const tombstones = Object.entries(list.tombstones)
    .filter(([, each]) => removedAt(each) >= historySince)
    .map(([id, tombstone]) => {
      const isMoved = areErased && typeof tombstone === "object" && "isMoved" in tombstone
      return [id, isMoved ? { lastModified: tombstone.lastModified, isMoved } : tombstone]
    })
  const isNone = Object.keys(list.subscriptions).length === 0 && tombstones.length === 0
  return isBlank(list) || isNone ? undefined : JSON.stringify({ ...list, tombstones })
}

/**
 * An ended registration shows in no view. Its entry goes an hour after its projector saw the end,
 * so later than an hour after the end. `since` and `was` of an ended one depend on whether the
 * entry before was forgotten.
 */
const essenceOfRegistration = (text: string, { keptFrom }: Beside): string | undefined => {
  const { on, seq } = JSON.parse(text) as Registration
  if (on) return text
  return seq < keptFrom ? undefined : JSON.stringify({ on, seq })
}

/**
 * A channel is shown by its begin: counts without it are of a channel that was forgotten, and may
 * be brought back by a killed nats-server. One that nobody is registered on goes a second later.
 */
const essenceOfChannel = (
  key: string,
  text: string,
  { areErased, begin }: Beside
): string | undefined => {
  const place = channelOfKey(key)
  if (place === undefined) return text
  const isShown = (since: number) => begin === undefined || begin.since === since
  if (place.of === "registrations") {
    const { seq: _, ...counts } = JSON.parse(text) as ChannelRegistrations
    if (counts.registrations === 0 || !isShown(counts.since)) return undefined
    return areErased ? JSON.stringify(counts) : text
  }
  return isShown((JSON.parse(text) as ChannelPushes).since) ? text : undefined
}

/** The fold has what WORK has: adds what has expired. */
export const withExpired = (
  { bucket, key }: EntryName,
  text: string | undefined,
  { expired }: Beside
): string | undefined => {
  const place = bucket === "channels" ? channelOfKey(key) : undefined
  const more = place?.of === "pushes" ? expired.get(place.channel) : undefined
  if (more === undefined) return text
  const { lastModified: at, pushes: delivered, seq, since } = more
  const counted: ChannelPushes = text === undefined ? emptyPushes(since) : JSON.parse(text)
  return counted.since === since
    ? JSON.stringify(addPushes(counted, { since, seq, delivered, at }))
    : text
}

/**
 * A draft is shown if LOG has its form. The messages of drafts that are over are deleted, so that a
 * fold that goes on may not learn of an end; and a killed nats-server may bring an index back.
 */
const essenceOfDrafts = (text: string, { drafts }: Beside): string | undefined => {
  const index = JSON.parse(text) as { readonly drafts: ReadonlyArray<readonly [string, number]> }
  const present = index.drafts.filter(([id, seq]) => drafts?.has(formName(id, seq)) ?? true)
  return present.length === 0 ? undefined : JSON.stringify(present)
}

/** Whether the plan of a broadcast may have expired in WORK. Its entry goes by its own age. */
export const mayBePlannedBefore = (text: string, workSince: number): boolean =>
  (JSON.parse(text) as Progress).acceptedAt < workSince

/** A difference between an entry and the fold, without anything secret. */
export interface Difference {
  readonly bucket: BucketName
  /** The key, with names of channels in the clear and pseudonyms of users. */
  readonly entry: string
  /** `changed`: both have it, and not alike. */
  readonly is: "missing" | "added" | "changed"
  readonly stream: "LOG" | "WORK"
  /** Sequence of the last message that the value of the streams rests on, or else the stored. */
  readonly since: number | undefined
  /** Members that differ. Of numbers and truth values also how: as stored, as it must be. */
  readonly members: ReadonlyArray<string>
}

interface Sides {
  readonly stored: string | undefined
  readonly folded: string | undefined
}

type Members = Readonly<Record<string, unknown>>

export const differenceOf = (name: EntryName, { folded, stored }: Sides): Difference => {
  const { bucket, key } = name
  const [is, must] = [membersOf(stored), membersOf(folded)]
  const isOfWork = bucket === "broadcasts" || channelOfKey(key)?.of === "pushes"
  const since = must?.["seq"] ?? is?.["seq"] ?? must?.["since"] ?? is?.["since"]
  return {
    bucket,
    entry: entryText(name, must ?? is),
    is: is === undefined ? "missing" : must === undefined ? "added" : "changed",
    stream: isOfWork ? "WORK" : "LOG",
    since: typeof since === "number" ? since : undefined,
    members: is === undefined || must === undefined ? [] : membersThatDiffer(is, must)
  }
}

const membersOf = (text: string | undefined): Members | undefined => {
  if (text === undefined) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? (value as Members) : {}
  } catch {
    return {}
  }
}

const membersThatDiffer = (is: Members, must: Members): ReadonlyArray<string> =>
  [...new Set([...Object.keys(is), ...Object.keys(must)])].flatMap((name) => {
    const [one, other] = [is[name], must[name]]
    if (JSON.stringify(one) === JSON.stringify(other)) return []
    return isPlain(one) && isPlain(other) ? `${name} ${one}, not ${other}` : name
  })

/** A text may be an endpoint, a key or a user id. */
const isPlain = (value: unknown): boolean =>
  value === undefined || typeof value === "number" || typeof value === "boolean"

/** A key for people. A token is named: its hash is nobody's business. */
const entryText = ({ bucket, key }: EntryName, value: Members | undefined): string => {
  const [first = "", ...rest] = key.split(".")
  if (bucket === "permissions" && first === "=token") return `token ${String(value?.["name"])}`
  if (first === "=begin") return `begin of ${nameOf(channelOfBegin(key as never))}`
  if (first === "=users" || bucket === "subscriptions" || bucket === "drafts") return key
  if (bucket === "broadcasts") return `broadcast ${key}`
  const name = nameOf(first as ChannelToken)
  return bucket === "registrations" ? `${rest.at(-1)} on ${name}` : `${rest.join(".")} of ${name}`
}

const nameOf = (channel: ChannelToken): string => decodeToken(channel) ?? channel
