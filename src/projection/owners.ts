// The owners of endpoints. A put of another user moves an endpoint: the list of the earlier owner
// is marked with the write that gives it to the new one, and `subscription.moved` then removes it
// there. Where the earlier owner is a stand-in, its registrations end before: the gateway
// registered the new owner before it stored the move.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { MessageType } from "#domain/messages/table.ts"
import { noCounts, registeredSince } from "#domain/registration.ts"
import { hasSameKeys, type SubscriptionPut } from "#domain/subscription/command.ts"
import {
  atEndpoint,
  type EndpointOwners,
  hasRoomFor,
  isRemoved,
  type LastOwner,
  lastOwnerOf,
  markMoved,
  noOwners,
  removedHashes,
  takenAt,
  withOwner
} from "#domain/subscription/owners.ts"
import {
  emptyList,
  markEnded,
  type StoredSubscription,
  type SubscriptionList,
  storedIn
} from "#domain/subscription/subscription.ts"
import type { Append } from "#nats/stream/append.ts"
import { type EntryKey, keys } from "#streams/buckets.ts"
import { subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"
import { registrationsAtOnce } from "#subscriptions/audience.ts"
import type { Move, Sets } from "./sets.ts"
import type { Step } from "./step.ts"

/** Appends at once. */
const concurrency = 64

/** Removals in one message, of 100 bytes each: a message has at most 32 KiB. */
const atOnceMax = 200

/** Registrations that end in one call: the projector applies nothing else meanwhile. */
const endedMax = 300

type ListStep = Extract<Step, { readonly kind: "list" }>

/** Why the projector rejects the put of an endpoint that another user has with other keys. */
export const ownedByAnother = "another user has this endpoint with other keys"

const pageOf = ({ owners }: Sets, hash: string) => owners.get(keys.endpointOwners(hash)) ?? noOwners

/** The hashes of the endpoints that may have no owner after a step. Its list is loaded. */
export const removedEndpoints = (
  { lists }: Sets,
  { command, key }: ListStep
): ReadonlyArray<string> =>
  command.type === "malformed" ? [] : removedHashes(lists.get(key) ?? emptyList, command)

/** The last owner of the endpoint of a put, if that is another user. */
const formerOf = (sets: Sets, { hash, stored: { seq }, user }: ListStep): LastOwner | undefined => {
  if (hash === undefined) return undefined
  const page = pageOf(sets, hash)
  const last = page.seq < seq ? lastOwnerOf(page, hash) : undefined
  return last?.owner === user ? undefined : last
}

/**
 * The user whose the endpoint of a put was before, also where a push service ended it; undefined:
 * nobody, or its own user. An earlier term may have written the page after it applied the put: then
 * that is done.
 */
export const formerOwner = (sets: Sets, step: ListStep): UserToken | undefined =>
  formerOf(sets, step)?.owner as UserToken | undefined

/** Whether a put stores an endpoint for which its page has no room. As above, for earlier terms. */
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
 * The subscription of another user at the endpoint of a put, or its tombstone; undefined: none. An
 * earlier term may have written that user's list after it applied the put: then the list shows the
 * outcome. A mark of the put is still to be completed.
 */
export const takenBy = (sets: Sets, step: ListStep): Taken | undefined => {
  const { command, hash, stored } = step
  const { endedAt, owner } = formerOf(sets, step) ?? {}
  if (hash === undefined || owner === undefined || command.type !== "subscription.put")
    return undefined
  const user = owner as UserToken
  const list = sets.lists.get(keys.subscriptions(user)) ?? emptyList
  const marked = Object.entries(list.subscriptions).find(([, { moved }]) => moved === stored.seq)
  const unmarked = list.seq < stored.seq ? atEndpoint(list, command.data.endpoint) : undefined
  const found = marked ?? unmarked
  const move = { user, id: found?.[0] ?? hash, seq: stored.seq, page: keys.endpointOwners(hash) }
  if (found !== undefined) return { ...move, isAllowed: mayTake(command, found[1]) }
  if (endedAt === undefined) return undefined
  // An ended endpoint is free for any keys, but a restore takes nothing from a user who had it
  // since.
  if (command.restored === true) return { ...move, isAllowed: false }
  const isKnown = list.seq < stored.seq && isRemoved(list, hash)
  return isKnown || takenAt(list, hash) === stored.seq ? { ...move, isAllowed: true } : undefined
}

/** Whether a put may take a stored subscription from another user. */
const mayTake = (command: SubscriptionPut, { data, standIn }: StoredSubscription): boolean => {
  // A renewal without a login or a restore takes nothing from another user, and an import takes
  // only from a stand-in.
  const isImport = command.imported === true && standIn !== true
  const isRenewalOrRestore = command.replaces?.renewal !== undefined || command.restored === true
  return !isRenewalOrRestore && !isImport && hasSameKeys(data, command.data)
}

/** Takes a subscription from the earlier owner. */
export const take = (sets: Sets, move: Move): void => {
  const key = keys.subscriptions(move.user)
  const list = sets.lists.get(key)!
  const isStored = storedIn(list, move.id) !== undefined
  const after = isStored ? markMoved(list, move.id, move.seq) : markEnded(list, move.id, move.seq)
  sets.lists.set(key, after, move.seq)
  if (sets.isLive) sets.owners.block(move.page)
  sets.moves.add(move)
}

/**
 * Notes the owners of a command's endpoints. `removed`: see `removedEndpoints`. `list`: the list
 * after the command. `isTaken`: it changed a subscription that was another user's.
 */
export const noteOwners = (
  sets: Sets,
  { command, hash, stored: { at, seq }, user }: ListStep,
  removed: ReadonlyArray<string>,
  list: SubscriptionList,
  isTaken: boolean
): void => {
  const pages = new Map<EntryKey<"endpointOwners">, EndpointOwners>()
  const named = "id" in command ? storedIn(list, command.id) : undefined
  const note = (each: string, after: (last: LastOwner | undefined) => LastOwner | undefined) => {
    const key = keys.endpointOwners(each)
    const page = pages.get(key) ?? pageOf(sets, each)
    // Noted by an earlier term, or two endpoints of this command share a page.
    if (page.seq >= seq && !pages.has(key)) return
    const before = lastOwnerOf(page, each)
    const last = after(before)
    // A page that a crash left behind may have had this owner before an end that is skipped here.
    const isBegin = each === hash && named?.seq === seq
    if (isBegin || last?.owner !== before?.owner || last?.endedAt !== before?.endedAt)
      pages.set(key, withOwner(page, each, last, seq, at))
  }
  const isPresent = named !== undefined && named.moved === undefined
  const isEnd = command.type === "subscription.gone"
  // Another user may store it: then the list of this one must not get it back. One who has stored
  // it may be erased since.
  const left = isEnd && !isTaken ? { owner: user, endedAt: at } : undefined
  // Another subscription may have replaced one that is gone.
  if (!(isPresent && isEnd))
    for (const each of removed) note(each, (last) => (last?.owner === user ? left : last))
  // Also where an earlier term wrote a list without it: a later command removed it, and is next.
  if (hash !== undefined) note(hash, () => ({ owner: user }))
  for (const [key, page] of pages) sets.owners.set(key, page, seq)
}

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

/**
 * Removes subscriptions that other users took from the list of a user, once that list says so. The
 * message expects the last one that the list includes: a later one may be this message already.
 */
const complete = Effect.fnUntraced(function* (sets: Sets, moves: ReadonlyArray<Move>) {
  const { user } = moves[0]!
  const key = keys.subscriptions(user)
  if (sets.lists.unstoredSince(key) !== Number.POSITIVE_INFINITY) return
  const list = sets.lists.get(key) ?? emptyList
  const isMarked = ({ id, seq }: Move) => takenAt(list, id) === seq
  const marked = moves.filter(isMarked).slice(0, atOnceMax)
  if (marked.length > 0) {
    const isStandIn = marked.some(({ id }) => storedIn(list, id)?.standIn)
    // Before the message by which a later term would find the move completed.
    if (isStandIn && !(yield* endRegistrations(sets, user))) return
    const moved = marked.map(({ id }) => ({ id, generation: storedIn(list, id)?.seq ?? 0 }))
    const body = { moved, at: yield* Clock.currentTimeMillis }
    const message = { subject: subjects.subscription(user), type: "subscription.moved" } as const
    const isStored = yield* tryAppend(sets, { ...message, body, expect: list.seq })
    // A rebuild must fold the message, too.
    if (!isStored || !sets.isLive) return
  }
  for (const move of moves) {
    if (isMarked(move) && !marked.includes(move)) continue
    sets.moves.delete(move)
    sets.standIns.delete(user)
    sets.owners.unblock(move.page)
  }
})

/**
 * Ends registrations of a user, of many only some: the next call goes on. False: others are left,
 * or LOG has no room. Safe to repeat: the end of a registration that ended changes nothing.
 */
const endRegistrations = Effect.fnUntraced(function* (sets: Sets, user: UserToken) {
  const { counts, isLive, standIns } = sets
  const key = keys.registrationCounts(user)
  yield* counts.load([key])
  const done = standIns.get(user) ?? 0
  const left = registeredSince(counts.get(key) ?? noCounts, user).filter((each) => each > done)
  const some = left.slice(0, isLive ? endedMax : undefined)
  const areEnded = yield* Effect.forEach(some, (each) => endRegistration(sets, each), {
    concurrency: registrationsAtOnce
  })
  if (areEnded.includes(false)) return false
  standIns.set(user, some.at(-1) ?? done)
  return some.length === left.length
})

/** Ends the registration that began at a sequence of LOG. False: LOG has no room for that. */
const endRegistration = Effect.fnUntraced(function* (sets: Sets, since: number) {
  const began = yield* sets.log.at("log", since)
  if (began?.message.type !== "registration.put") return true
  const { message, subject } = began
  const body = { user: message.user, at: yield* Clock.currentTimeMillis }
  return yield* tryAppend(sets, { subject, type: "registration.delete", body })
})

/** Appends a message to LOG. False: another one came first, or LOG has no room. */
const tryAppend = <T extends MessageType>({ log }: Sets, message: Append<T>) =>
  log.append("log", message).pipe(
    Effect.as(true),
    Effect.catchTag("AppendConflict", () => Effect.succeed(false)),
    Effect.catchReason("NatsUnavailable", "NoRoom", () => Effect.succeed(false))
  )
