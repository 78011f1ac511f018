// Which old messages of LOG nothing rests on any more, of one subject or of one broadcast. Each
// function returns sequences in an order in which they may be deleted one by one: after each, LOG
// is a history with the same outcome. What is not certain to be unneeded stays. Pure.
import type { Malformed } from "./messages/forms.ts"
import type { Message } from "./messages/table.ts"
import {
  evolveRegistration,
  passOverInRegistration,
  type Registration,
  type RegistrationCommand
} from "./registration.ts"
import type { SubscriptionCommand } from "./subscription/command.ts"
import {
  emptyList,
  evolveList,
  isBlank,
  passOverInList,
  type SubscriptionList
} from "./subscription/subscription.ts"
import { removedAt } from "./subscription/tombstone.ts"

/** A message of LOG. */
export interface Past {
  readonly seq: number
  /** When the server stored it, milliseconds since the epoch. */
  readonly at: number
  readonly message: Message | Malformed
}

/**
 * The shortest history. A broadcast waits up to 30 days for its start and lives 28 from then on,
 * and its redrive needs 35 more.
 */
export const historyDaysMin = 95

const dayMillis = 24 * 60 * 60_000

/** The time before which messages are older than a history of so many days. */
export const endOfHistory = (now: number, days: number): number => now - days * dayMillis

/** Messages of one user's subscriptions in the order of their sequences. */
interface UserPast {
  readonly messages: ReadonlyArray<Past>
  /** Sequences of the commands that the projector rejected, as facts in LOG say. */
  readonly rejected: ReadonlySet<number>
  /** Messages from this time on stay, in milliseconds since the epoch. */
  readonly before: number
}

export interface UnneededOfUser {
  readonly seqs: ReadonlyArray<number>
  /** The list folded from all messages. */
  readonly whole: SubscriptionList
  /** Ids of its tombstones from before the history that a fold of what stays lacks. */
  readonly forgotten: ReadonlyArray<string>
}

/** Most folds of one message for a subject: 20,000 take 0.2 s. */
const foldsMax = 20_000

/** Folds a message of a user's subscriptions, as the projector does. */
export const foldListOf =
  (rejected: ReadonlySet<number>) =>
  (list: SubscriptionList, past: Past): SubscriptionList => {
    const { message, seq } = past
    if (rejected.has(seq) || !message.type.startsWith("subscription."))
      return passOverInList(list, seq)
    // As the projector does: a list begins with a put.
    if (isBlank(list) && message.type !== "subscription.put") return list
    return evolveList(list, message as SubscriptionCommand, seq)
  }

/**
 * Old messages of a user's subscriptions without which the fold is the same at each moment of the
 * history, but for tombstones from before it. A user who has neither a subscription nor a later
 * tombstone needs none of them. Marks of other users' puts are not folded: a mark ends with
 * `subscription.moved`.
 */
export const unneededOfUser = ({ before, messages, rejected }: UserPast): UnneededOfUser => {
  const fold = foldListOf(rejected)
  const whole = messages.reduce(fold, emptyList)
  const isOld = (removed: number) => removed < before
  const isOver =
    Object.keys(whole.subscriptions).length === 0 &&
    Object.values(whole.tombstones).every((each) => isOld(removedAt(each))) &&
    messages.every(({ at }) => isOld(at))
  if (isOver)
    return { seqs: orderOfEnded(messages, fold), whole, forgotten: Object.keys(whole.tombstones) }
  const candidatesMax = Math.floor(foldsMax / Math.max(1, messages.length))
  const isSame = sameBut(whole, isOld)
  const { dropped, kept } = without(messages, { before, fold, isSame, candidatesMax })
  const list = kept.reduce(fold, emptyList)
  const forgotten = Object.keys(whole.tombstones).filter(
    (id) => !Object.hasOwn(list.tombstones, id)
  )
  return { seqs: dropped, whole, forgotten }
}

/** A put that stored a subscription, and the generation that it then had. */
interface Put {
  readonly seq: number
  readonly generation: number
}

/**
 * All messages of a user whose subscriptions have ended, in an order in which they may be deleted:
 * after each, the others leave no subscription, either. The puts of a subscription go before what
 * ended it, and that may be a put of another one, which ended later. It takes one fold of each
 * message.
 */
const orderOfEnded = (
  messages: ReadonlyArray<Past>,
  fold: Search["fold"]
): ReadonlyArray<number> => {
  const puts: Array<number> = []
  const others: Array<number> = []
  /** Puts that changed nothing, as there was no room: with fewer messages there may be. */
  const idle: Array<number> = []
  const present = new Map<string, Array<Put>>()
  let list = emptyList
  for (const past of messages) {
    const { message, seq } = past
    const before = list.subscriptions
    list = fold(list, past)
    const { subscriptions } = list
    for (const [id, some] of present)
      if (!Object.hasOwn(subscriptions, id)) {
        puts.push(...orderOfPuts(some))
        present.delete(id)
      }
    if (message.type !== "subscription.put") others.push(seq)
    else if (subscriptions === before) idle.push(seq)
    else {
      const some = present.get(message.id) ?? []
      some.push({ seq, generation: subscriptions[message.id]!.seq })
      present.set(message.id, some)
    }
  }
  return [...idle, ...puts, ...others]
}

/**
 * The puts of one subscription in the order in which they may be deleted: one generation after the
 * other, and of each the first put last. Without it the next put would begin the generation, which
 * then has another number.
 */
const orderOfPuts = (puts: ReadonlyArray<Put>): ReadonlyArray<number> =>
  [...Map.groupBy(puts, ({ generation }) => generation).values()].flatMap(([first, ...later]) =>
    [...later, first!].map(({ seq }) => seq)
  )

interface Search {
  readonly before: number
  readonly fold: (list: SubscriptionList, past: Past) => SubscriptionList
  readonly isSame: (list: SubscriptionList) => boolean
  readonly candidatesMax: number
}

/**
 * Leaves out each old message, one after the other, without which the fold is the same, and the
 * subscriptions with which the history begins.
 */
const without = (
  messages: ReadonlyArray<Past>,
  { before, candidatesMax, fold, isSame }: Search
) => {
  const old = messages.filter(({ at }) => at < before)
  const later = messages.filter(({ at }) => at >= before)
  const textAtBegin = subscriptionsIn(old.reduce(fold, emptyList))
  const dropped: Array<number> = []
  const kept: Array<Past> = []
  /** The fold of `kept`. */
  let list = emptyList
  for (const [i, past] of old.entries()) {
    const atBegin = i < candidatesMax ? old.slice(i + 1).reduce(fold, list) : undefined
    if (
      atBegin !== undefined &&
      subscriptionsIn(atBegin) === textAtBegin &&
      isSame(later.reduce(fold, atBegin))
    ) {
      dropped.push(past.seq)
      continue
    }
    kept.push(past)
    list = fold(list, past)
  }
  return { dropped, kept: [...kept, ...later] }
}

const subscriptionsIn = ({ subscriptions }: SubscriptionList): string =>
  JSON.stringify(subscriptions)

/** Whether a list is the same as another one, but for old tombstones that it lacks. */
const sameBut = (whole: SubscriptionList, isOld: (removed: number) => boolean) => {
  const { tombstones, ...others } = whole
  const text = JSON.stringify(others)
  return ({ tombstones: left, ...rest }: SubscriptionList): boolean => {
    if (JSON.stringify(rest) !== text) return false
    const expected = Object.entries(tombstones).filter(
      ([id, each]) => Object.hasOwn(left, id) || !isOld(removedAt(each))
    )
    return JSON.stringify(Object.fromEntries(expected)) === JSON.stringify(left)
  }
}

/** The messages that the counts of a channel rest on. */
export interface ChannelRests {
  /** Sequence of the registration by which the channel began; Infinity: nobody is registered. */
  readonly since: number
  /** Sequence of the last change of the count. */
  readonly changed: number
}

/** Folds a message of a registration, as the projector does. */
export const foldRegistrationOf =
  (rejected: ReadonlySet<number>) =>
  (registration: Registration | undefined, { message, seq }: Past): Registration =>
    rejected.has(seq) || !message.type.startsWith("registration.")
      ? passOverInRegistration(registration, seq)
      : evolveRegistration(registration, message as RegistrationCommand, seq)

/** Messages of one registration in the order of their sequences. */
interface RegistrationPast extends UserPast {
  readonly channel: ChannelRests
}

interface UnneededOfRegistration {
  readonly seqs: ReadonlyArray<number>
  /**
   * Sequence of the last of them of which `channel.begun` must say before what the counts of the
   * channel rest on; 0: it need not.
   */
  readonly countedUpTo: number
}

/**
 * Old messages of a registration on which it does not rest, nor the last change of the count of its
 * channel.
 */
export const unneededOfRegistration = ({
  before,
  channel: { changed, since },
  messages,
  rejected
}: RegistrationPast): UnneededOfRegistration => {
  const { ended, idle, stands } = partsOf(messages, rejected)
  // One that stands keeps the last message, too, which the next append expects.
  const last = stands ? messages.at(-1)?.seq : undefined
  const idleOld = idle.filter(({ at, seq }) => at < before && seq !== changed && seq !== last)
  const over = ended.filter(({ end: { at, seq } }) => at < before && seq < Math.max(since, changed))
  const overUpTo = over.at(-1)?.end.seq ?? 0
  return {
    // A repeated put would begin the registration in the place of the one that began it.
    seqs: [...idleOld, ...over.flatMap(({ began, end }) => [began, end])].map(({ seq }) => seq),
    countedUpTo: overUpTo > since ? overUpTo : 0
  }
}

/**
 * The registrations that ended, each by the messages of its begin and its end: without the end it
 * would stand. Messages that changed nothing are idle. `stands`: the last one did not end.
 */
const partsOf = (messages: ReadonlyArray<Past>, rejected: ReadonlySet<number>) => {
  const fold = foldRegistrationOf(rejected)
  const ended: Array<{ readonly began: Past; readonly end: Past }> = []
  const idle: Array<Past> = []
  let began: Past | undefined
  let registration: Registration | undefined
  for (const past of messages) {
    registration = fold(registration, past)
    if (began === undefined && registration.on) began = past
    else if (began !== undefined && !registration.on) {
      ended.push({ began, end: past })
      began = undefined
    } else idle.push(past)
  }
  return { ended, idle, stands: began !== undefined }
}

/** A broadcast with all that LOG has of it. */
interface BroadcastPast {
  readonly origin: Past
  readonly parts: ReadonlyArray<Past>
  /** The changes of its state, in order. */
  readonly changes: ReadonlyArray<Past>
  /** Final counts, or the fact that it was rejected. */
  readonly end: Past
  readonly before: number
}

/**
 * The messages of a broadcast that ended before the history, all of them or none. The broadcast
 * goes before its parts, which nobody reads without it, and its end goes last.
 */
export const unneededOfBroadcast = ({
  before,
  changes,
  end,
  origin,
  parts
}: BroadcastPast): ReadonlyArray<number> => {
  const all = [origin, ...parts, ...changes, end]
  return all.every(({ at }) => at < before) ? all.map(({ seq }) => seq) : []
}
