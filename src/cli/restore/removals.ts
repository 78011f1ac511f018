// Finds in LOG which subscriptions push services removed, or strikes suspended, in a range of time.
import { Effect } from "effect"
import type { SubscriptionMatched, SubscriptionPut } from "#domain/subscription/command.ts"
import { isSameBrowser, type StoredSubscription } from "#domain/subscription/subscription.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import type { Stored } from "#nats/stream/stored.ts"
import { filters, parseSubscription } from "#streams/subjects.ts"
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
  /** Sequence of the last put. */
  readonly putSeq: number
  /** Why the subscription was removed, or {@link suspended}. */
  readonly cause: string
}

export interface UserRemovals {
  readonly user: UserToken
  readonly removals: ReadonlyArray<Removal>
  /** Sequence of the user's last message. */
  readonly seq: number
}

type Standing = Pick<Removal, "generation" | "putSeq"> &
  Pick<StoredSubscription, "data" | "vapidKey">

/** The state after the messages read so far. */
interface State {
  /** Stored subscriptions by user and id. */
  readonly standing: Map<string, Standing>
  /** Removals in the range that nothing has undone since, by user and id. */
  readonly removed: Map<UserToken, Map<string, Removal>>
  readonly lastSeq: Map<UserToken, number>
}

const keyOf = (user: UserToken, id: string): string => `${user}.${id}`

const drop = ({ removed, standing }: State, user: UserToken, id: string): void => {
  standing.delete(keyOf(user, id))
  removed.get(user)?.delete(id)
}

const put = (state: State, user: UserToken, seq: number, message: SubscriptionPut): void => {
  const { data, id, vapidKey } = message
  const former = state.standing.get(keyOf(user, id))
  const isSame = former !== undefined && isSameBrowser(former, message)
  drop(state, user, id)
  state.standing.set(keyOf(user, id), {
    generation: isSame ? former.generation : seq,
    putSeq: seq,
    data,
    ...(vapidKey === undefined ? {} : { vapidKey })
  })
}

const isWanted = ({ causes, from, to }: Range, at: number, cause: string): boolean =>
  at >= from && at < to && (causes.length === 0 || causes.includes(cause))

const note = ({ removed }: State, user: UserToken, removal: Removal): void => {
  if (!removed.has(user)) removed.set(user, new Map())
  removed.get(user)!.set(removal.id, removal)
}

/**
 * Applies a message about one generation of a subscription. One about an older one has no effect.
 */
const applyOutcome = (state: State, user: UserToken, { at, message }: Stored, range: Range) => {
  if (!("generation" in message)) return
  const { generation, id } = message as SubscriptionMatched
  const stored = state.standing.get(keyOf(user, id))
  if (stored?.generation !== generation) return
  const { putSeq } = stored
  const found = (cause: string) => {
    if (isWanted(range, at, cause)) note(state, user, { id, generation, putSeq, cause })
  }
  switch (message.type) {
    case "subscription.matched/1":
      state.standing.set(keyOf(user, id), { ...stored, vapidKey: message.vapidKey })
      break
    case "subscription.gone/1":
      drop(state, user, id)
      found(message.cause)
      break
    case "subscription.suspended/1":
      found(suspended)
      break
    case "subscription.cleared/1":
      state.removed.get(user)?.delete(id)
  }
}

const apply = (state: State, stored: Stored, range: Range): void => {
  const { message, seq, subject } = stored
  const user = parseSubscription(subject)
  if (user === undefined) return
  state.lastSeq.set(user, seq)
  if (message.type === "subscription.put/1") put(state, user, seq, message)
  else if (message.type === "subscription.delete/1")
    for (const { id } of message.removed) drop(state, user, id)
  else applyOutcome(state, user, stored, range)
}

/** Removals and suspensions in the range that still hold, by user. */
export const findRemovals = Effect.fnUntraced(function* (range: Range) {
  const log = yield* EventLog
  const state: State = { standing: new Map(), removed: new Map(), lastSeq: new Map() }
  yield* log.replay("log", [filters.subscriptions], (stored) =>
    Effect.sync(() => apply(state, stored, range))
  )
  return [...state.removed].map(
    ([user, removals]): UserRemovals => ({
      user,
      removals: [...removals.values()],
      seq: state.lastSeq.get(user)!
    })
  )
})
