// Whether an entry of a bucket is the one that a rebuild makes of LOG. The two differ where the
// trimmer or an erasure has deleted the messages that the entry came from; each function says how.
import { isEndpointOwners } from "#streams/buckets.ts"
import { endedMillis, historyMillisMin, renewableMillis } from "../fleet/days.ts"

/** Facts about LOG, after the rebuild. */
export interface Ground {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly hasMessage: (seq: number) => boolean
  /** When a message was stored, in milliseconds since the epoch. */
  readonly storedAt: (seq: number) => number
  readonly areErased: boolean
}

export interface Entry {
  readonly bucket: string
  readonly key: string
  /** Undefined: there is none. */
  readonly before: string | undefined
  readonly after: string | undefined
}

export const isSame = ({ after, before, bucket, key }: Entry, ground: Ground): boolean => {
  if (before === after) return true
  const [one, other] = [before, after].map((text) => text && JSON.parse(text))
  if (bucket === "bellcast_subscriptions")
    return isEndpointOwners(key)
      ? areSameOwners(one, other, ground)
      : isSameList(one, other, ground)
  if (bucket === "bellcast_registrations")
    return key.startsWith("=users.")
      ? isSamePage(one, other, ["users"], ground)
      : isSameRegistration(one, other, ground)
  if (key.endsWith(".registrations")) return isSameCount(one, other, ground)
  return false
}

const isEqual = (one: unknown, other: unknown): boolean => textOf(one) === textOf(other)

/** Members come in the order in which a process learned of them. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each
  )

interface Tombstone {
  readonly lastModified: number
  readonly isMoved?: true
}

interface List {
  readonly seq: number
  readonly subscriptions: Readonly<Record<string, unknown>>
  readonly tombstones: Readonly<Record<string, number | Tombstone>>
}

/**
 * Tombstones from before the history count for nothing. A tombstone of a move says to which
 * generation pushes were waiting, which an erasure of the other user takes along. An empty list of
 * an erased user is none.
 */
const isSameList = (one: List | undefined, other: List | undefined, ground: Ground): boolean =>
  isEqual(essenceOf(one, ground), essenceOf(other, ground))

const essenceOf = (list: List | undefined, { areErased, now }: Ground) => {
  const tombstones = Object.entries(list?.tombstones ?? {}).flatMap(([id, each]) => {
    const { isMoved, lastModified } = typeof each === "number" ? { lastModified: each } : each
    if (lastModified < now - historyMillisMin) return []
    return [[id, areErased && isMoved ? { isMoved, lastModified } : each] as const]
  })
  const isNone = Object.keys(list?.subscriptions ?? {}).length + tombstones.length === 0
  return isNone ? undefined : { ...list, tombstones: Object.fromEntries(tombstones) }
}

interface Page {
  readonly seq: number
  readonly [member: string]: unknown
}

/**
 * A page has the sequence of its last message. An old one may have been deleted, or what it removed
 * from the page.
 */
const isSamePage = (
  one: Page | undefined,
  other: Page | undefined,
  members: ReadonlyArray<string>,
  ground: Ground
): boolean =>
  members.every((name) => isEqual(one?.[name] ?? {}, other?.[name] ?? {})) &&
  (one === undefined || !isInHistory(one.seq, ground) || one.seq === other?.seq)

const isInHistory = (seq: number, { hasMessage, now, storedAt }: Ground): boolean =>
  hasMessage(seq) && storedAt(seq) >= now - historyMillisMin

interface Ended {
  readonly at: number
}

/** The end of an endpoint counts for as long as its subscription may be renewed. */
const areSameOwners = (one: Page | undefined, other: Page | undefined, ground: Ground): boolean => {
  const withLate = (page: Page | undefined): Page | undefined => {
    const ended = Object.entries((page?.["ended"] ?? {}) as Readonly<Record<string, Ended>>)
    const late = ended.filter(([, { at }]) => ground.now - at < renewableMillis)
    return page && { ...page, ended: Object.fromEntries(late) }
  }
  return isSamePage(withLate(one), withLate(other), ["owners", "ended"], ground)
}

interface Registration {
  readonly seq: number
  readonly on: boolean
}

/**
 * An ended registration is forgotten some time after its end; by the service later than by a
 * rebuild. The further members of one depend on whether the entry before was forgotten.
 */
const isSameRegistration = (
  one: Registration | undefined,
  other: Registration | undefined,
  { hasMessage, now, storedAt }: Ground
): boolean => {
  if (one?.on === true || other?.on === true) return false
  const seqOf = (ended: Registration | undefined) =>
    ended === undefined || !hasMessage(ended.seq) || storedAt(ended.seq) < now - endedMillis
      ? undefined
      : ended.seq
  return seqOf(one) === seqOf(other)
}

/** The last change of a count may be one of an erased user: LOG says its time without the user. */
const isSameCount = (one: Page | undefined, other: Page | undefined, ground: Ground): boolean =>
  one !== undefined &&
  other !== undefined &&
  ground.areErased &&
  isEqual({ ...one, seq: 0 }, { ...other, seq: 0 })
