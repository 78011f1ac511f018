// The owners of endpoints. A put of another user moves an endpoint: the list of the earlier owner
// is marked with the write that gives it to the new one, and `subscription.moved/1` then removes it
// there.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import {
  atEndpoint,
  type EndpointOwners,
  hasRoomFor,
  hasSameKeys,
  markMoved,
  noOwners,
  ownerOf,
  removedHashes,
  withOwner
} from "#domain/subscription/owners.ts"
import { emptyList, type SubscriptionList, storedIn } from "#domain/subscription/subscription.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import type { Move, Sets } from "./sets.ts"
import { endRegistrations, tryAppend } from "./stand-ins.ts"
import type { Step } from "./step.ts"

/** Appends at once. */
const concurrency = 64
/** Removals in one message, of 100 bytes each: a message has at most 32 KiB. */
const atOnceMax = 200

type ListStep = Extract<Step, { readonly kind: "list" }>

/** Why the projector rejects the put of an endpoint that another user has with other keys. */
export const heldByAnother = "another user has this endpoint with other keys"

const pageOf = ({ owners }: Sets, hash: string) => owners.get(keys.endpointOwners(hash)) ?? noOwners

/** The hashes of the endpoints that may have no owner after a step. Its list is loaded. */
export const removedEndpoints = (
  { lists }: Sets,
  { command, key }: ListStep
): ReadonlyArray<string> =>
  command.type === "malformed" ? [] : removedHashes(lists.get(key) ?? emptyList, command)

/**
 * The user whose the endpoint of a put was before; undefined: nobody, or its own user. An earlier
 * run may have written the page after it applied the put: then that is done.
 */
export const formerOwner = (
  sets: Sets,
  { hash, stored: { seq }, user }: ListStep
): UserToken | undefined => {
  if (hash === undefined) return undefined
  const page = pageOf(sets, hash)
  const owner = page.seq < seq ? ownerOf(page, hash) : undefined
  return owner === user ? undefined : (owner as UserToken | undefined)
}

/** Whether a put stores an endpoint for which its page has no room. As above, for earlier runs. */
export const isPageFull = (sets: Sets, { hash, stored: { seq } }: ListStep): boolean => {
  if (hash === undefined) return false
  const page = pageOf(sets, hash)
  return page.seq < seq && !hasRoomFor(page, hash)
}

/** The subscription that a put takes from another user. */
interface Taken extends Move {
  readonly isAllowed: boolean
}

/**
 * The subscription of another user at the endpoint of a put; undefined: none. An earlier run may
 * have written that user's list after it applied the put: then the list shows the outcome. A mark
 * of the put is still to be completed.
 */
export const takenBy = (sets: Sets, step: ListStep): Taken | undefined => {
  const { command, hash, stored } = step
  const user = formerOwner(sets, step)
  if (hash === undefined || user === undefined || command.type !== "subscription.put/1")
    return undefined
  const list = sets.lists.get(keys.subscriptions(user)) ?? emptyList
  const marked = Object.entries(list.subscriptions).find(([, { moved }]) => moved === stored.seq)
  const unmarked = list.seq < stored.seq ? atEndpoint(list, command.data.endpoint) : undefined
  const [id, found] = marked ?? unmarked ?? []
  if (id === undefined || found === undefined) return undefined
  const page = keys.endpointOwners(hash)
  // A renewal without a login or a restore takes nothing from another user, and an import takes
  // only from a stand-in.
  const isImport = command.imported === true && found.standIn !== true
  const isRenewalOrRestore = command.replaces?.renewal !== undefined || command.restored === true
  const takesNothing = isRenewalOrRestore || isImport
  const isAllowed = !takesNothing && hasSameKeys(found.data, command.data)
  return { user, id, seq: stored.seq, page, isAllowed }
}

/** Takes a subscription from the earlier owner. */
export const take = (sets: Sets, move: Move): void => {
  const key = keys.subscriptions(move.user)
  sets.lists.set(key, markMoved(sets.lists.get(key)!, move.id, move.seq), move.seq)
  if (sets.isLive) sets.owners.hold(move.page)
  sets.moves.add(move)
}

/**
 * Notes the owners of a command's endpoints. `removed`: see `removedEndpoints`. `list`: the list
 * after the command.
 */
export const noteOwners = (
  sets: Sets,
  { command, hash, stored: { seq }, user }: ListStep,
  removed: ReadonlyArray<string>,
  list: SubscriptionList
): void => {
  const pages = new Map<EntryKey<"endpointOwners">, EndpointOwners>()
  const note = (each: string, ownerAfter: (owner: string | undefined) => string | undefined) => {
    const key = keys.endpointOwners(each)
    const page = pages.get(key) ?? pageOf(sets, each)
    // Noted by an earlier run, or two endpoints of this command share a page.
    if (page.seq >= seq && !pages.has(key)) return
    const owner = ownerAfter(ownerOf(page, each))
    if (owner !== ownerOf(page, each)) pages.set(key, withOwner(page, each, owner, seq))
  }
  const named = "id" in command ? storedIn(list, command.id) : undefined
  const isPresent = named !== undefined && named.moved === undefined
  // Another subscription may have replaced one that is gone.
  if (!(isPresent && command.type === "subscription.gone/1"))
    for (const each of removed) note(each, (owner) => (owner === user ? undefined : owner))
  // Also where an earlier run wrote a list without it: a later command removed it, and is next.
  if (hash !== undefined) note(hash, () => user)
  for (const [key, page] of pages) sets.owners.set(key, page, seq)
}

/**
 * Removes subscriptions that other users took from the list of a user, once that list says so. The
 * message expects the last one that the list includes: a later one may be this message already.
 */
const complete = Effect.fnUntraced(function* (sets: Sets, moves: ReadonlyArray<Move>) {
  const { user } = moves[0]!
  const key = keys.subscriptions(user)
  if (sets.lists.unstoredSince(key) !== Number.POSITIVE_INFINITY) return
  const list = sets.lists.get(key) ?? emptyList
  const isMarked = ({ id, seq }: Move) => storedIn(list, id)?.moved === seq
  const marked = moves.filter(isMarked).slice(0, atOnceMax)
  if (marked.length > 0) {
    const isStandIn = marked.some(({ id }) => storedIn(list, id)!.standIn)
    // Before the message by which a later run would find the move completed.
    if (isStandIn && !(yield* endRegistrations(sets, user))) return
    const moved = marked.map(({ id }) => ({ id, generation: storedIn(list, id)!.seq }))
    const body = { moved, at: yield* Clock.currentTimeMillis }
    const message = { subject: subjects.subscription(user), type: "subscription.moved/1" } as const
    const isStored = yield* tryAppend(sets, { ...message, body, expect: list.seq })
    // A rebuild must fold the message, too.
    if (!isStored || !sets.isLive) return
  }
  for (const move of moves) {
    if (isMarked(move) && !marked.includes(move)) continue
    sets.moves.delete(move)
    sets.owners.release(move.page)
  }
})

/** Completes the moves that were folded, as far as there is room. */
export const completeMoves = Effect.fnUntraced(function* (sets: Sets) {
  if (sets.moves.size === 0) return
  const users = [...Map.groupBy(sets.moves, ({ user }) => user)]
  for (let i = 0; i < users.length; i += concurrency) {
    const some = users.slice(i, i + concurrency)
    yield* sets.lists.load(some.map(([user]) => keys.subscriptions(user)))
    yield* Effect.forEach(some, ([, moves]) => complete(sets, moves), {
      concurrency,
      discard: true
    })
    // Allows the cache to drop what was loaded.
    yield* sets.lists.flush
    yield* sets.counts.flush
  }
  yield* sets.owners.flush
})
