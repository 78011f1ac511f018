// Finds in LOG which subscriptions push services removed, or strikes suspended, in a range of time,
// and makes the messages that undo that: for requests and for the command alike.
import * as Effect from "effect/Effect"
import type { Marks, SubscriptionCommand, SubscriptionPut } from "#domain/subscription/command.ts"
import {
  endpointHash,
  isMoved,
  lastOwnerOf,
  noOwners,
  removedBy,
  withMarks
} from "#domain/subscription/owners.ts"
import {
  emptyList,
  evolveList,
  exhausted,
  nextTimestamp,
  type SubscriptionList,
  type SubscriptionQuota
} from "#domain/subscription/subscription.ts"
import { validRenewalIn } from "#domain/subscription/tombstone.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { keys } from "#streams/buckets.ts"
import { filters, parseSubscription, subjects } from "#streams/subjects.ts"
import type { UserToken } from "#streams/tokens.ts"

/** Stands for a cause where the subscription was suspended, not removed. */
export const suspended = "suspended"

export interface Range {
  /** Milliseconds since the epoch: from `from` on, before `to`. */
  readonly from: number
  readonly to: number
  /** Only these causes of removal, or {@link suspended}. Empty: all. */
  readonly causes: ReadonlyArray<string>
}

export interface Removal {
  readonly id: string
  /** Sequence of the first put with these keys; the bucket's list has the same number. */
  readonly generation: number
  /** Why the subscription was removed, or {@link suspended}. */
  readonly cause: string
  /** The last put. */
  readonly put: SubscriptionPut
}

/** A user's subscriptions after the messages read so far. */
interface State {
  list: SubscriptionList
  /** The last put of each subscription in the list. */
  readonly puts: Map<string, SubscriptionPut>
  /** Removals in the range that nothing has undone since. */
  readonly removed: Map<string, Removal>
  /** Sequence of the last message, applied or rejected. */
  seq: number
}

export interface UserRemovals {
  readonly user: UserToken
  readonly removals: ReadonlyArray<Removal>
  /** Sequence of the user's last message. */
  readonly seq: number
}

const isCommand = (message: { readonly type: string }): message is SubscriptionCommand =>
  message.type.startsWith("subscription.")

/** Sequence of the put that began a subscription; undefined: the list has none of this id. */
const generationIn = ({ subscriptions }: SubscriptionList, id: string): number | undefined =>
  Object.hasOwn(subscriptions, id) ? subscriptions[id]!.seq : undefined

/** Notes a removal or suspension, if the range includes its time and its cause. */
const note = (
  { puts, removed }: State,
  { generation, id }: { readonly generation: number; readonly id: string },
  cause: string,
  at: number,
  { causes, from, to }: Range
): void => {
  const isWanted = at >= from && at < to && (causes.length === 0 || causes.includes(cause))
  if (isWanted) removed.set(id, { id, generation, cause, put: puts.get(id)! })
}

/** The subscriptions that their user, or another one, took away: they are not given back. */
const endedBy = (message: SubscriptionCommand): ReadonlyArray<{ readonly id: string }> => {
  // A subscription that had ended is not given back, either: `isStoredByAnother` says why.
  if (message.type === "subscription.moved")
    return message.moved.filter(({ generation }) => generation > 0)
  return message.type === "subscription.gone" ? [] : removedBy(emptyList, message)
}

const apply = (
  state: State,
  { at, message, seq }: Stored,
  range: Range,
  { marks, rejected }: Facts
): void => {
  state.seq = seq
  if (!isCommand(message) || rejected.has(seq)) return
  const { puts, removed } = state
  const before = withMarks(state.list, marks.get(seq))
  state.list = evolveList(before, message, seq)
  for (const { id } of endedBy(message)) {
    removed.delete(id)
    puts.delete(id)
  }
  if (!("id" in message)) return
  const { id } = message
  if (message.type === "subscription.put") {
    if (generationIn(state.list, id) === undefined) return
    puts.set(id, message)
    removed.delete(id)
  } else if (generationIn(before, id) === message.generation) {
    // A message about another generation has no effect.
    if (message.type === "subscription.cleared") removed.delete(id)
    if (message.type === "subscription.suspended") note(state, message, suspended, at, range)
    if (message.type === "subscription.gone") {
      removed.delete(id)
      note(state, message, message.cause, at, range)
      puts.delete(id)
    }
  }
}

interface Facts {
  /** Sequences of the commands that the projector rejected. */
  readonly rejected: Set<number>
  /** By sequence of a command: what was another user's when the projector folded it. */
  readonly marks: Map<number, Marks>
}

const addTo = ({ marks, rejected }: Facts, { message }: Stored): void => {
  if (message.type === "command.rejected") rejected.add(message.command)
  if (message.type === "subscription.taken") marks.set(message.command, message.taken)
}

/** The facts about all commands. */
const allFacts = Effect.fnUntraced(function* () {
  const facts: Facts = { rejected: new Set(), marks: new Map() }
  const wanted = [filters.rejected, filters.taken]
  yield* (yield* EventLog).replay("log", wanted, (fact) => addTo(facts, fact))
  return facts
})

/** The same of one user. LOG may have very many about others. */
const factsOf = Effect.fnUntraced(function* (user: UserToken) {
  const log = yield* EventLog
  const about: Array<string> = []
  yield* log.replay("log", [subjects.subscription(user)], ({ message, seq }) => {
    if (message.type === "subscription.put") about.push(subjects.rejected(seq))
    about.push(subjects.taken(seq))
  })
  const facts: Facts = { rejected: new Set(), marks: new Map() }
  for (const fact of yield* log.lastOf("log", about)) addTo(facts, fact)
  return facts
})

/** Removals and suspensions that still hold of the subscriptions that a filter matches, by user. */
const removalsUnder = Effect.fnUntraced(function* (filter: string, range: Range, facts: Facts) {
  const log = yield* EventLog
  const users = new Map<UserToken, State>()
  yield* log.replay("log", [filter], (stored) => {
    const user = parseSubscription(stored.subject)
    if (user === undefined) return
    const state = users.get(user) ?? {
      list: emptyList,
      puts: new Map(),
      removed: new Map(),
      seq: 0
    }
    users.set(user, state)
    apply(state, stored, range, facts)
  })
  return [...users].map(
    ([user, { removed, seq }]): UserRemovals => ({ user, removals: [...removed.values()], seq })
  )
})

/** Removals and suspensions in the range that still hold, by user. */
export const findRemovals = (range: Range) =>
  Effect.flatMap(allFacts(), (facts) => removalsUnder(filters.subscriptions, range, facts))

const always: Range = { from: 0, to: Number.POSITIVE_INFINITY, causes: [] }

/** The removal or suspension of a subscription; undefined: there is none that still holds. */
export const findRemoval = Effect.fnUntraced(function* (user: UserToken, id: string) {
  const subject = subjects.subscription(user)
  const [found] = yield* removalsUnder(subject, always, yield* factsOf(user))
  return found?.removals.find((removal) => removal.id === id)
})

/**
 * Whether another user has stored a removed subscription since, also one who lost it again.
 * `list`: that of its user.
 */
export const isStoredByAnother = Effect.fnUntraced(function* (
  user: UserToken,
  list: SubscriptionList,
  { id, put: { data } }: Removal
) {
  if (isMoved(list, id)) return true
  const hash = endpointHash(data.endpoint)
  const page = yield* (yield* Buckets).get("subscriptions", keys.endpointOwners(hash))
  return (lastOwnerOf(page?.value ?? noOwners, hash)?.owner ?? user) !== user
})

/** The message that undoes a removal. Undefined: the user has as many subscriptions as allowed. */
export const undoing = (
  { cause, generation, id, put: { data, user: name, vapidKey } }: Removal,
  list: SubscriptionList,
  now: number,
  quota: SubscriptionQuota
) => {
  if (cause === suspended)
    return {
      type: "subscription.cleared",
      body: { id, generation, by: "operator", at: now }
    } as const
  if (exhausted(list, data.endpoint, quota) !== undefined) return undefined
  // The browser still has this secret, and does not ask for another one.
  const renewal = validRenewalIn(list.tombstones, id, now)
  return {
    type: "subscription.put",
    body: {
      user: name,
      id,
      data,
      restored: true,
      ...(vapidKey === undefined ? {} : { vapidKey }),
      ...(renewal === undefined ? {} : { renewal }),
      lastModified: nextTimestamp(list, now)
    }
  } as const
}
