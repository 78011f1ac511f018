// The owners of endpoints: an index of all users' subscriptions, in pages by the hash of the
// endpoint. Pure.
import { jsonHash } from "#basics/json.ts"
import type { Marks, SubscriptionCommand } from "./command.ts"
import { foldedEndpoint } from "./endpoint.ts"
import {
  markEnded,
  type StoredSubscription,
  type SubscriptionList,
  storedIn
} from "./subscription.ts"
import { renewableMillisMax, type Taken } from "./tombstone.ts"

/** The value of a page, in the bucket `subscriptions`. */
export interface EndpointOwners {
  readonly v: 1
  /** Sequence of the last command that changed the page. */
  readonly seq: number
  /** Tokens of users by the hash of the endpoint, in the order of the hashes. */
  readonly owners: Readonly<Record<string, string>>
  /** The last owners of endpoints that push services ended, likewise. */
  readonly ended?: Readonly<Record<string, Ended>>
}

interface Ended {
  readonly owner: string
  /** When NATS stored that the subscription is gone. */
  readonly at: number
}

/** The owner of an endpoint, or, with `endedAt`, its owner until a push service ended it. */
export interface LastOwner {
  readonly owner: string
  readonly endedAt?: number
}

export const noOwners: EndpointOwners = { v: 1, seq: 0, owners: {} }

/**
 * The hash of an endpoint, in whatever spelling: the id of its subscription, unless a NATS client
 * chose another id.
 */
export const endpointHash = (endpoint: string): string => jsonHash(foldedEndpoint(endpoint))

/** The token of the user who owns an endpoint; undefined: nobody. */
export const ownerOf = ({ owners }: EndpointOwners, hash: string): string | undefined =>
  Object.hasOwn(owners, hash) ? owners[hash] : undefined

/** As {@link ownerOf}, or the last owner of an endpoint that a push service ended. */
export const lastOwnerOf = (page: EndpointOwners, hash: string): LastOwner | undefined => {
  const owner = ownerOf(page, hash)
  if (owner !== undefined) return { owner }
  const { ended = {} } = page
  return Object.hasOwn(ended, hash)
    ? { owner: ended[hash]!.owner, endedAt: ended[hash]!.at }
    : undefined
}

/**
 * Owners in one page, with those of ended endpoints, which make room for others: 122 KB. Clients
 * can choose endpoints of one page, and each put there writes all of it. The pages take 65 million
 * endpoints, if their hashes are evenly distributed.
 */
export const ownersMax = 1_000

/** Whether a page has an endpoint, or room for it. */
export const hasRoomFor = ({ owners }: EndpointOwners, hash: string): boolean =>
  Object.hasOwn(owners, hash) || Object.keys(owners).length < ownersMax

/** Values with another one of a key; undefined: without it. Its keys are in their order. */
const withValue = <A>(
  values: Readonly<Record<string, A>>,
  key: string,
  value: A | undefined
): Record<string, A> => {
  const entries = Object.entries(values)
  const before = entries.filter(([each]) => each < key)
  const after = entries.filter(([each]) => each > key)
  const own = value === undefined ? [] : [[key, value] as const]
  return Object.fromEntries([...before, ...own, ...after])
}

/** The latest of the ended endpoints: those of the last 30 days, at most `max`. */
const latest = (ended: Readonly<Record<string, Ended>>, max: number, now: number) => {
  const entries = Object.entries(ended).filter(([, { at }]) => now - at < renewableMillisMax)
  const excess = new Set(
    [...entries].sort(([, a], [, b]) => a.at - b.at).slice(0, Math.max(0, entries.length - max))
  )
  return Object.fromEntries(entries.filter((entry) => !excess.has(entry)))
}

/** A page that does not say any more that an endpoint which ended before a time was a user's. */
export const withoutEnd = (
  page: EndpointOwners,
  hash: string,
  owner: string,
  before: number
): EndpointOwners => {
  const { ended: all = {}, ...rest } = page
  if (!Object.hasOwn(all, hash) || all[hash]!.owner !== owner || all[hash]!.at >= before)
    return page
  const ended = withValue(all, hash, undefined)
  return Object.keys(ended).length === 0 ? rest : { ...rest, ended }
}

/** Notes the last owner of an endpoint at `seq`, stored at `now`; undefined: nobody. */
export const withOwner = (
  page: EndpointOwners,
  hash: string,
  last: LastOwner | undefined,
  seq: number,
  now: number
): EndpointOwners => {
  const { endedAt, owner } = last ?? {}
  const isEnded = owner !== undefined && endedAt !== undefined
  const owners = withValue(page.owners, hash, isEnded ? undefined : owner)
  const noted = withValue(page.ended ?? {}, hash, isEnded ? { owner, at: endedAt } : undefined)
  const ended = latest(noted, Math.max(0, ownersMax - Object.keys(owners).length), now)
  return { v: 1, seq, owners, ...(Object.keys(ended).length === 0 ? {} : { ended }) }
}

/**
 * The subscriptions that a command of their user, or a push, removes. One that moved has the other
 * user as its owner, unless LOG has nothing of that user any more.
 */
export const removedBy = (
  list: SubscriptionList,
  command: SubscriptionCommand
): ReadonlyArray<{ readonly id: string }> => {
  if (command.type === "subscription.delete") return command.removed
  if (command.type === "subscription.moved")
    return command.moved.filter(
      ({ generation, id }) => (storedIn(list, id)?.seq ?? 0) === generation
    )
  if (command.type === "subscription.gone") return [command]
  if (command.type !== "subscription.put" || command.replaces === undefined) return []
  return command.replaces.id === command.id ? [] : [command.replaces]
}

/** The hashes of endpoints that may have no owner after a command. `list`: that of its user. */
export const removedHashes = (
  list: SubscriptionList,
  command: SubscriptionCommand
): ReadonlyArray<string> => {
  const hashes = removedBy(list, command).flatMap(({ id }) => {
    const stored = storedIn(list, id)
    const own = /^[0-9a-f]{64}$/.test(id) ? [id] : []
    return stored === undefined ? own : [...own, endpointHash(stored.data.endpoint)]
  })
  return [...new Set(hashes)]
}

/** A list without the subscriptions that are another user's now. */
export const withoutMoved = (list: SubscriptionList): SubscriptionList => {
  const entries = Object.entries(list.subscriptions)
  const own = entries.filter(([, { moved }]) => moved === undefined)
  return own.length === entries.length ? list : { ...list, subscriptions: Object.fromEntries(own) }
}

/** Whether another user stored a subscription of this list, and its user nothing since. */
export const isMoved = (list: SubscriptionList, id: string): boolean => {
  const stored = storedIn(list, id)
  const tombstone = Object.hasOwn(list.tombstones, id) ? list.tombstones[id] : undefined
  return stored === undefined
    ? typeof tombstone === "object" && "isMoved" in tombstone
    : stored.moved !== undefined
}

/** The tombstones of subscriptions that other users took while pushes were sent to them. */
export const takenFrom = ({
  tombstones
}: SubscriptionList): ReadonlyArray<Taken & { readonly id: string }> =>
  Object.entries(tombstones).flatMap(([id, tombstone]) =>
    typeof tombstone === "object" && "moved" in tombstone ? [{ id, ...tombstone }] : []
  )

/**
 * Whether a put at `seq` renews, without a login, a subscription that another user has stored since
 * the gateway read the list.
 */
export const renewsMoved = (
  list: SubscriptionList,
  command: SubscriptionCommand,
  seq: number
): boolean =>
  list.seq < seq &&
  command.type === "subscription.put" &&
  command.replaces?.renewal !== undefined &&
  isMoved(list, command.replaces.id)

/** The subscription of an endpoint in a list, with its id, unless it is another user's now. */
export const atEndpoint = (
  list: SubscriptionList,
  endpoint: string
): readonly [id: string, stored: StoredSubscription] | undefined => {
  const folded = foldedEndpoint(endpoint)
  return Object.entries(list.subscriptions).find(
    ([, { data, moved }]) => moved === undefined && foldedEndpoint(data.endpoint) === folded
  )
}

/** Marks a subscription as another user's by the put at `seq`. */
export const markMoved = (list: SubscriptionList, id: string, seq: number): SubscriptionList => ({
  ...list,
  subscriptions: { ...list.subscriptions, [id]: { ...list.subscriptions[id]!, moved: seq } }
})

/** A list with the marks that LOG has for the message that is folded next. */
export const withMarks = (list: SubscriptionList, marks: Marks = []): SubscriptionList =>
  marks.reduce((marked, { id, moved }) => {
    const stored = storedIn(marked, id)
    if (stored === undefined) return markEnded(marked, id, moved)
    return stored.moved === undefined ? markMoved(marked, id, moved) : marked
  }, list)

/**
 * The marks of subscriptions that a command changed, and of one that had ended and is stored again.
 * `subscription.moved` says so by itself.
 */
export const marksBy = (
  before: SubscriptionList,
  command: SubscriptionCommand,
  after: SubscriptionList
): Marks => {
  if (command.type === "subscription.moved") return []
  const ids = Object.keys(before.subscriptions).filter(
    (id) => storedIn(after, id) !== storedIn(before, id)
  )
  const again =
    command.type === "subscription.put" && !isStoredIn(before, command) ? [command.id] : []
  return [...ids, ...again].flatMap((id) => {
    const moved = takenAt(before, id)
    return moved === undefined ? [] : [{ id, moved }]
  })
}

const isStoredIn = (list: SubscriptionList, { id }: { readonly id: string }): boolean =>
  storedIn(list, id) !== undefined

/**
 * The put by which another user took a subscription, or one that had ended, as long as no
 * `subscription.moved` says so; undefined: none did.
 */
export const takenAt = (list: SubscriptionList, id: string): number | undefined => {
  const stored = storedIn(list, id)
  if (stored !== undefined) return stored.moved
  const tombstone = Object.hasOwn(list.tombstones, id) ? list.tombstones[id] : undefined
  return typeof tombstone === "object" && "by" in tombstone ? tombstone.by : undefined
}

/** Whether a list has the tombstone of a subscription. */
export const isRemoved = ({ tombstones }: SubscriptionList, id: string): boolean =>
  Object.hasOwn(tombstones, id)
