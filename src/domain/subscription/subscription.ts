// A user's list of subscriptions, folded from the commands in LOG: what it holds, how much room it
// has, and how a secret renews a subscription without a login. LOG and bucket hold the hash of a
// secret. Pure.
import {
  hasSameKeys,
  isSameBrowser,
  isStandIn,
  type SubscriptionCommand,
  type SubscriptionData,
  type SubscriptionDelete,
  type SubscriptionGone,
  type SubscriptionPut
} from "./command.ts"
import { foldedEndpoint } from "./endpoint.ts"
import { type Judged, withStrike, withSuspension } from "./strike.ts"
import {
  boundTombstones,
  movedOr,
  removedAt,
  renewableMillisMax,
  type Tombstone,
  validRenewalIn,
  withMoved,
  withoutRenewal
} from "./tombstone.ts"

export interface StoredSubscription extends Judged {
  readonly data: SubscriptionData
  readonly vapidKey?: string
  /** Sequence of the command that stored it: the first one with these keys. */
  readonly seq: number
  readonly lastModified: number
  /**
   * Sequence of the put by which another user took the subscription. Nobody sees the entry, and
   * `subscription.moved` removes it.
   */
  readonly moved?: number
  /** The user is a stand-in: a user who takes the subscription gets the registrations, too. */
  readonly standIn?: true
  /** SHA-256 of the secret that renews the subscription. Clients do not see it. */
  readonly renewal?: string
  /** The hash of the secret that was spent for it, and when. */
  readonly renewed?: { readonly by: string; readonly at: number }
}

/** Whether a broadcast was for a subscription of one of its users when it started. */
export const takes = ({ moved, seq, suspended }: StoredSubscription, start: number): boolean =>
  seq <= start && suspended === undefined && (moved === undefined || start < moved)

/** The value of a key in the bucket `subscriptions`. */
export interface SubscriptionList {
  readonly v: 1
  /** Sequence of the last folded command. The next one is appended expecting exactly this. */
  readonly seq: number
  /**
   * The highest timestamp ever given to this user, removals included (milliseconds since the
   * epoch).
   */
  readonly lastModified: number
  readonly subscriptions: Readonly<Record<string, StoredSubscription>>
  readonly tombstones: Readonly<Record<string, Tombstone>>
}

/** The list of a user without commands. Its timestamp is lower than every later one. */
export const emptyList: SubscriptionList = {
  v: 1,
  seq: 0,
  lastModified: 0,
  subscriptions: {},
  tombstones: {}
}

/**
 * Whether a list is that of nobody, or of a user who was erased. The latter is stored, so that
 * workers learn of it, and its next command expects 0, as LOG has none.
 */
export const isBlank = ({ seq }: SubscriptionList): boolean => seq === 0

/** A NATS client may choose the id `constructor`, a property of every object. */
export const storedIn = (
  { subscriptions }: SubscriptionList,
  id: string
): StoredSubscription | undefined =>
  Object.hasOwn(subscriptions, id) ? subscriptions[id] : undefined

/** Timestamps are unique and strictly increasing per user: now, or one more than the last. */
export const nextTimestamp = (list: SubscriptionList, now: number): number =>
  Math.max(now, list.lastModified + 1)

/** A list without one of its subscriptions, for quotas. */
export const withoutSubscription = (list: SubscriptionList, id: string): SubscriptionList => ({
  ...list,
  subscriptions: without(list.subscriptions, id)
})

/**
 * Folds one command, stored at `seq`, into the list. A command that was folded before changes
 * nothing.
 */
export const evolveList = (
  list: SubscriptionList,
  command: SubscriptionCommand,
  seq: number
): SubscriptionList => foldList(list, command, seq).list

/** As {@link evolveList}. `reason`: why the command is rejected. */
export const foldList = (
  list: SubscriptionList,
  command: SubscriptionCommand,
  seq: number
): { readonly list: SubscriptionList; readonly reason?: string } => {
  const next = evolve(list, command, seq)
  // These commands only make a list smaller.
  if (
    next === list ||
    [
      "subscription.delete",
      "subscription.gone",
      "subscription.moved",
      "subscription.cleared"
    ].includes(command.type)
  )
    return { list: next }
  if (listFits(next, listBytesMax)) return { list: next }
  return {
    list: passOverInList(list, seq),
    reason: `the user's subscriptions would be larger than ${listBytesMax} bytes`
  }
}

/** A rejected command changes only the sequence, which the next command expects. */
export const passOverInList = (list: SubscriptionList, seq: number): SubscriptionList =>
  seq <= list.seq ? list : { ...list, seq }

const evolve = (
  list: SubscriptionList,
  command: SubscriptionCommand,
  seq: number
): SubscriptionList => {
  if (seq <= list.seq) return list
  const next = { ...list, seq }
  switch (command.type) {
    case "subscription.put":
      return put(list, command, seq)
    case "subscription.delete":
      return command.removed.reduce(removeNamed, next)
    case "subscription.gone":
      return removeGone(next, command)
    case "subscription.renewable":
      return replace(next, command, ({ renewed, strikes: _, suspended: __, ...stored }) => ({
        ...stored,
        renewal: command.renewal,
        ...(command.isRepeated && renewed !== undefined ? { renewed } : {})
      }))
    case "subscription.moved":
      return command.moved.reduce((acc, { generation, id }) => {
        const lastModified = nextTimestamp(acc, command.at)
        const stored = storedIn(acc, id)
        if (stored === undefined) return markEnded(acc, id)
        return stored.seq === generation
          ? remove(acc, id, movedOr(stored, lastModified, { lastModified, isMoved: true }))
          : acc
      }, next)
    case "subscription.matched":
      return replace(next, command, (stored) => ({ ...stored, vapidKey: command.vapidKey }))
    case "subscription.struck":
      return replace(next, command, (stored) => withStrike(stored, command))
    case "subscription.suspended":
      return replace(next, command, (stored) => withSuspension(stored, command))
    case "subscription.cleared":
      return replace(next, command, ({ strikes: _, suspended: __, ...stored }) => stored)
  }
}

const put = (given: SubscriptionList, command: SubscriptionPut, seq: number): SubscriptionList => {
  const { data, id, lastModified, replaces, vapidKey } = command
  const present = storedIn(given, id)
  const former = present?.moved === undefined ? present : undefined
  const list = replaces === undefined || replaces.id === id ? given : removeNamed(given, replaces)
  const isSame = former !== undefined && isSameBrowser(former, command)
  const renewal =
    command.renewal ?? former?.renewal ?? validRenewalIn(given.tombstones, id, lastModified)
  const by = replaces?.renewal
  // The response to a renewal may have been lost. So it can be repeated also after this put.
  const kept = isSame && command.renewal === undefined ? former.renewed : undefined
  const renewed = by === undefined ? kept : { by, at: lastModified }
  const stored: StoredSubscription = {
    data,
    ...(vapidKey === undefined ? {} : { vapidKey }),
    // The same generation: pushes that wait for it are sent.
    seq: isSame ? former.seq : seq,
    lastModified,
    ...(isStandIn(command.user) ? { standIn: true } : {}),
    ...(renewal === undefined ? {} : { renewal }),
    ...(renewed === undefined ? {} : { renewed })
  }
  return {
    ...list,
    seq,
    lastModified: Math.max(list.lastModified, lastModified),
    subscriptions: { ...list.subscriptions, [id]: stored },
    tombstones: without(list.tombstones, id)
  }
}

/**
 * Marks a removed subscription as another user's. The timestamp stays, so clients see no change.
 * `by`: the put of the other user, as long as no `subscription.moved` says so.
 */
export const markEnded = (list: SubscriptionList, id: string, by?: number): SubscriptionList => {
  const tombstones = withMoved(list.tombstones, id, by)
  return tombstones === list.tombstones ? list : { ...list, tombstones }
}

/** Removes a subscription, or from the tombstone of one that a push service ended, the secret. */
const removeNamed = (
  list: SubscriptionList,
  { id, lastModified }: SubscriptionDelete["removed"][number]
): SubscriptionList => {
  const stored = storedIn(list, id)
  if (stored === undefined) return { ...list, tombstones: withoutRenewal(list.tombstones, id) }
  // Before `subscription.moved`, which then finds nothing to remove.
  return remove(list, id, movedOr(stored, lastModified, lastModified))
}

/** A browser that subscribed again since keeps its new subscription. */
const removeGone = (
  list: SubscriptionList,
  { at, generation, id }: SubscriptionGone
): SubscriptionList => {
  const stored = storedIn(list, id)
  if (stored?.seq !== generation) return list
  const lastModified = nextTimestamp(list, at)
  const { renewal } = stored
  const ended = renewal ? { lastModified, renewal, generation } : lastModified
  // A moved one before `subscription.moved`, which then finds nothing to remove.
  return remove(list, id, movedOr(stored, lastModified, ended))
}

/**
 * Changes a subscription, unless its browser has subscribed again since. The timestamp stays, so
 * clients see no change.
 */
const replace = (
  list: SubscriptionList,
  { generation, id }: { readonly id: string; readonly generation: number },
  change: (stored: StoredSubscription) => StoredSubscription
): SubscriptionList => {
  const stored = storedIn(list, id)
  return stored?.seq === generation
    ? { ...list, subscriptions: { ...list.subscriptions, [id]: change(stored) } }
    : list
}

const remove = (list: SubscriptionList, id: string, tombstone: Tombstone): SubscriptionList => ({
  ...list,
  lastModified: Math.max(list.lastModified, removedAt(tombstone)),
  subscriptions: without(list.subscriptions, id),
  tombstones: boundTombstones({ ...list.tombstones, [id]: tombstone })
})

const without = <A>(all: Readonly<Record<string, A>>, id: string): Record<string, A> => {
  const { [id]: _, ...rest } = all
  return rest
}

/**
 * Bytes of JSON of one subscription that the gateway stores: endpoint, keys and other attributes.
 * Browsers' subscriptions have 300 to 700 bytes, an endpoint at most 2,048 characters. Not a
 * setting: no browser needs more, and the projector holds the lists of many users in memory.
 */
export const subscriptionBytesMax = 4_096

/**
 * Bytes of JSON that a list may grow to; a bucket value takes 1,044,480 with its headers. The
 * gateway stores at most 50 subscriptions of 4 KiB and 1000 tombstones of at most 190 bytes, which
 * is less. Commands that were published straight onto NATS may come near.
 */
export const listBytesMax = 1_040_000
/** Free space that puts of a user must leave for tombstones, strikes and matched keys. */
export const listMarginBytes = 100_000

/** Whether a list has at most so many bytes of JSON. */
export const listFits = (list: object, bytesMax: number): boolean => {
  const text = JSON.stringify(list)
  // No character takes more than three bytes.
  return (
    text.length * 3 <= bytesMax ||
    (text.length <= bytesMax && new TextEncoder().encode(text).length <= bytesMax)
  )
}

/** Whether storing `data` at `id` makes a list larger. */
export const growsList = (
  {
    subscriptions
  }: { readonly subscriptions: Readonly<Record<string, { readonly data: object }>> },
  { data, id }: Pick<SubscriptionPut, "data" | "id">
): boolean =>
  !Object.hasOwn(subscriptions, id) ||
  Buffer.byteLength(JSON.stringify(data)) >
    Buffer.byteLength(JSON.stringify(subscriptions[id]!.data))

export interface SubscriptionQuota {
  readonly subscriptionsPerUserMax: number
  readonly subscriptionsPerUserPerHostMax: number
}

/** Which quota leaves no room for another subscription at an endpoint; undefined: none. */
export const exhausted = (
  { subscriptions }: SubscriptionList,
  endpoint: string,
  { subscriptionsPerUserMax, subscriptionsPerUserPerHostMax }: SubscriptionQuota
): "user" | "host" | undefined => {
  const stored = Object.values(subscriptions)
  if (stored.length >= subscriptionsPerUserMax) return "user"
  const host = hostOf(endpoint)
  const atHost = stored.filter(({ data }) => hostOf(data.endpoint) === host)
  return atHost.length >= subscriptionsPerUserPerHostMax ? "host" : undefined
}

/** The host of an endpoint; NATS clients may have stored one that is no URL. */
const hostOf = (endpoint: string): string => (URL.canParse(endpoint) ? new URL(endpoint).host : "")

/** How long a renewal may be repeated, because its response may have been lost. */
const repeatedMillisMax = 60 * 60_000

/** The subscription that a secret renews, or renewed in the same request before. */
interface Renewable {
  /** Sequence of the put that began the subscription. */
  readonly generation: number
  /** Undefined: a push service ended it. */
  readonly data?: SubscriptionData
  readonly isRepeated: boolean
}

/**
 * The subscription `id`, if the secret of this hash renews it in a request that stores `data` as
 * `newId`. Undefined: the secret is unknown, spent or void.
 */
export const renewableBy = (
  list: SubscriptionList,
  hash: string,
  id: string,
  { data, id: newId }: { readonly data: SubscriptionData; readonly id: string },
  now: number
): Renewable | undefined => {
  const stored = storedIn(list, id)
  if (stored?.renewal === hash)
    return { generation: stored.seq, data: stored.data, isRepeated: false }
  const ended = Object.hasOwn(list.tombstones, id) ? list.tombstones[id] : undefined
  if (typeof ended === "object" && "renewal" in ended && ended.renewal === hash)
    return now - ended.lastModified < renewableMillisMax
      ? { generation: ended.generation, isRepeated: false }
      : undefined
  const renewed = storedIn(list, newId)
  const isRepeated =
    renewed?.renewed?.by === hash &&
    now - renewed.renewed.at < repeatedMillisMax &&
    foldedEndpoint(renewed.data.endpoint) === foldedEndpoint(data.endpoint) &&
    hasSameKeys(renewed.data, data)
  return isRepeated ? { generation: renewed.seq, data: renewed.data, isRepeated } : undefined
}
