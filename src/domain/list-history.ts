// Which old messages of a user's subscriptions nothing rests on any more, in an order in which they
// may be deleted one by one: after each, LOG is a history with the same outcome. What is not
// certain to be unneeded stays. Pure.
import { dayMillis, type Past } from "./history.ts"
import type { Marks, SubscriptionCommand } from "./subscription/command.ts"
import { withMarks } from "./subscription/owners.ts"
import {
  emptyList,
  evolveList,
  isBlank,
  passOverInList,
  type SubscriptionList
} from "./subscription/subscription.ts"
import { removedAt, renewableMillisMax, type Tombstone } from "./subscription/tombstone.ts"

/** Messages of one user's subscriptions in the order of their sequences. */
interface ListPast {
  readonly messages: ReadonlyArray<Past>
  /** Sequences of the commands that the projector rejected, as facts in LOG say. */
  readonly rejected: ReadonlySet<number>
  /** By sequence of a command: what LOG says was another user's when it was folded. */
  readonly marks?: ReadonlyMap<number, Marks>
  /** Messages from this time on stay, in milliseconds since the epoch. */
  readonly before: number
  /** More messages follow. Then the last one of these stays. */
  readonly isPart?: boolean
}

export interface UnneededOfUser {
  readonly seqs: ReadonlyArray<number>
  /** The list folded from all messages. */
  readonly whole: SubscriptionList
  /** Ids of its tombstones from before the history that a fold of what stays lacks. */
  readonly forgotten: ReadonlyArray<string>
  /** Once these are gone, there may be more. */
  readonly isMore: boolean
}

/** Folds a message of a user's subscriptions, as the projector does. */
export const foldListOf =
  ({ marks, rejected }: Pick<ListPast, "marks" | "rejected">) =>
  (list: SubscriptionList, past: Past): SubscriptionList => {
    const { message, seq } = past
    if (rejected.has(seq) || !message.type.startsWith("subscription."))
      return passOverInList(list, seq)
    // As the projector does where nobody was erased.
    if (isBlank(list) && message.type !== "subscription.put") return list
    return evolveList(withMarks(list, marks?.get(seq)), message as SubscriptionCommand, seq)
  }
type Fold = ReturnType<typeof foldListOf>

/** Up to so many messages, each is left out in turn. */
const eachMax = 64

/**
 * Old messages of a user's subscriptions without which the fold is the same at each moment of the
 * history, but for tombstones from before it. A user who has neither a subscription nor a later
 * tombstone needs none of them. Marks of other users' puts are not folded: `subscription.moved` or
 * `subscription.taken` says what came of them.
 */
export const unneededOfUser = (past: ListPast): UnneededOfUser => {
  const { before, isPart = false, messages } = past
  const fold = foldListOf(past)
  const last = messages.at(-1)!
  const young = messages.findIndex((each) => each.at >= before || (isPart && each === last))
  const old = young === -1 ? messages : messages.slice(0, young)
  const later = messages.slice(old.length)
  const { atBegin, puts } = putsIn(old, fold)
  const whole = later.reduce(fold, atBegin)
  const isOld = (tombstone: Tombstone) =>
    removedAt(tombstone) < before && !(isPart && mayRenew(tombstone, last.at))
  const endedBefore = (following: ReadonlyArray<Past>) => {
    const isForgotten = forgottenIn(old, following, whole, isOld)
    return [
      ...puts.filter((each) => isForgotten(each.id)),
      ...old.filter((each) => !isPut(each) && idsIn(each).every(isForgotten))
    ].map(({ seq }) => seq)
  }
  const all = endedBefore(later)
  if (all.length === messages.length)
    return { seqs: all, whole, forgotten: Object.keys(whole.tombstones), isMore: false }
  // The next append expects the last message.
  const stays = later.length > 0 ? [] : [last]
  const isSame = sameAs({ atBegin, whole, isOld, fold, later }, (left) =>
    [...left, ...stays].reduce(fold, emptyList)
  )
  const candidates = old.filter((each) => !stays.includes(each))
  const ended = endedBefore([...later, ...stays])
  const { dropped, isMore } = droppedFrom(candidates, ended, fold, isSame)
  const { tombstones } = without(messages, dropped).reduce(fold, emptyList)
  const forgotten = Object.keys(whole.tombstones).filter((id) => !Object.hasOwn(tombstones, id))
  return { seqs: dropped, whole, forgotten, isMore }
}

const isPut = ({ message }: Past): boolean => message.type === "subscription.put"

/** The ids of subscriptions that a message is about. */
const idsIn = ({ message }: Past): ReadonlyArray<string> => {
  if (message.type === "subscription.delete") return message.removed.map(({ id }) => id)
  if (message.type === "subscription.moved") return message.moved.map(({ id }) => id)
  return "id" in message && message.type.startsWith("subscription.") ? [message.id as string] : []
}

/** The id of the subscription that a put replaces. */
const replacedIn = ({ message }: Past): ReadonlyArray<string> =>
  message.type === "subscription.put" && message.replaces ? [message.replaces.id] : []

/** Whether a put after this time may take its secret over from a tombstone. */
const mayRenew = (tombstone: Tombstone, at: number): boolean =>
  typeof tombstone === "object" &&
  "renewal" in tombstone &&
  removedAt(tombstone) + renewableMillisMax + dayMillis > at

/**
 * Whether all that messages say of a subscription is forgotten: the list has nothing of it but an
 * old tombstone, no later message is about it, and it replaced none of which more is known.
 */
const forgottenIn = (
  old: ReadonlyArray<Past>,
  later: ReadonlyArray<Past>,
  { subscriptions, tombstones }: SubscriptionList,
  isOld: (tombstone: Tombstone) => boolean
) => {
  const known = new Set([
    ...Object.keys(subscriptions),
    ...Object.keys(tombstones).filter((id) => !isOld(tombstones[id]!)),
    ...later.flatMap(idsIn)
  ])
  const replacing = old.filter((each) => replacedIn(each).length > 0)
  for (let size = -1; size < known.size; ) {
    size = known.size
    for (const each of replacing) if (known.has(replacedIn(each)[0]!)) known.add(idsIn(each)[0]!)
  }
  return (id: string) => !known.has(id)
}

/** A put, and the generation that its subscription then had. */
interface Put {
  readonly id: string
  readonly seq: number
  readonly generation: number
}

/**
 * The list after some messages, and the puts of subscriptions that ended, in an order in which they
 * may be deleted: after each, the others leave no such subscription, either. They go before what
 * ended it, and that may be a put of another one, which ended later. First come puts that changed
 * nothing, as there was no room: with fewer messages there may be.
 */
const putsIn = (messages: ReadonlyArray<Past>, fold: Fold) => {
  const puts: Array<Put> = []
  const idle: Array<Put> = []
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
    if (message.type !== "subscription.put") continue
    const { id } = message
    if (subscriptions === before) idle.push({ id, seq, generation: 0 })
    else
      present.set(id, [...(present.get(id) ?? []), { id, seq, generation: subscriptions[id]!.seq }])
  }
  return { atBegin: list, puts: [...idle, ...puts] }
}

/**
 * The puts of one subscription in the order in which they may be deleted: one generation after the
 * other, and of each the first put last. Without it the next put would begin the generation, which
 * then has another number.
 */
const orderOfPuts = (puts: ReadonlyArray<Put>): ReadonlyArray<Put> =>
  [...Map.groupBy(puts, ({ generation }) => generation).values()].flatMap(([first, ...later]) => [
    ...later,
    first!
  ])

type IsSame = (left: ReadonlyArray<Past>) => boolean

/** The list with which the history begins, the one at its end, and how one leads to the other. */
interface Lists {
  readonly atBegin: SubscriptionList
  readonly whole: SubscriptionList
  readonly isOld: (tombstone: Tombstone) => boolean
  readonly fold: Fold
  readonly later: ReadonlyArray<Past>
}

/**
 * Whether the history begins with the same subscriptions and ends with the same list, but for old
 * tombstones. `beginOf`: the list with which it begins by the messages that are left.
 */
const sameAs = (
  { atBegin, fold, isOld, later, whole }: Lists,
  beginOf: (left: ReadonlyArray<Past>) => SubscriptionList
): IsSame => {
  const { tombstones, ...others } = whole
  const [subscriptions, text] = [JSON.stringify(atBegin.subscriptions), JSON.stringify(others)]
  const restOf = (list: SubscriptionList) => JSON.stringify([list.lastModified, list.tombstones])
  const rest = restOf(atBegin)
  return (left) => {
    const begin = beginOf(left)
    if (JSON.stringify(begin.subscriptions) !== subscriptions) return false
    // The same list leads to the same one: most are not folded on.
    const isAlike = later.length > 0 && isBlank(begin) === isBlank(atBegin)
    if (isAlike && restOf(begin) === rest) return true
    const { tombstones: kept, ...end } = later.reduce(fold, begin)
    if (JSON.stringify(end) !== text) return false
    const expected = Object.entries(tombstones).filter(
      ([id, each]) => Object.hasOwn(kept, id) || !isOld(each)
    )
    return JSON.stringify(Object.fromEntries(expected)) === JSON.stringify(kept)
  }
}

/**
 * The messages that go: those of forgotten subscriptions, and others without which a list is the
 * same. Of many messages, those are tried that are about one subscription, by a list of it alone.
 */
const droppedFrom = (
  candidates: ReadonlyArray<Past>,
  ended: ReadonlyArray<number>,
  fold: Fold,
  isSame: IsSame
) => {
  const over = together(candidates, within(candidates, ended), isSame)
  const left = without(candidates, over)
  if (left.length <= eachMax)
    return { dropped: [...over, ...oneByOne(left, left, isSame)], isMore: false }
  const repeated = together(left, repeatedIn(left, fold), isSame)
  const rest = without(left, repeated)
  const several = rest.filter((each) => idsIn(each).length > 1).slice(0, severalMax)
  const more = [...repeated, ...oneByOne(rest, several, isSame)]
  return { dropped: [...over, ...more], isMore: more.length > 0 }
}

/** Messages about several subscriptions that are tried at once: for each, all are folded. */
const severalMax = 8

const within = (messages: ReadonlyArray<Past>, seqs: ReadonlyArray<number>) => {
  const own = new Set(messages.map(({ seq }) => seq))
  return seqs.filter((seq) => own.has(seq))
}

const without = (messages: ReadonlyArray<Past>, seqs: ReadonlyArray<number>) => {
  const going = new Set(seqs)
  return messages.filter(({ seq }) => !going.has(seq))
}

/** All of these, if the list is the same without them; or those in a half or quarter of them. */
const together = (
  messages: ReadonlyArray<Past>,
  seqs: ReadonlyArray<number>,
  isSame: IsSame,
  cuts = 2
): ReadonlyArray<number> => {
  if (seqs.length === 0 || isSame(without(messages, seqs))) return seqs
  if (cuts === 0) return []
  const half = Math.ceil(seqs.length / 2)
  const first = together(messages, seqs.slice(0, half), isSame, cuts - 1)
  const left = without(messages, first)
  return [...first, ...together(left, seqs.slice(half), isSame, cuts - 1)]
}

/** Of these, each without which the list is the same, after those before it. */
const oneByOne = (
  messages: ReadonlyArray<Past>,
  tried: ReadonlyArray<Past>,
  isSame: IsSame
): ReadonlyArray<number> => {
  const dropped: Array<number> = []
  let left = messages
  for (const each of tried) {
    const fewer = left.filter((other) => other !== each)
    if (!isSame(fewer)) continue
    left = fewer
    dropped.push(each.seq)
  }
  return dropped
}

/** Messages about one subscription without which what later ones say of it is the same. */
const repeatedIn = (messages: ReadonlyArray<Past>, fold: Fold): ReadonlyArray<number> => {
  const about = new Map<string, Array<Past>>()
  for (const each of messages)
    for (const id of new Set([...idsIn(each), ...replacedIn(each)]))
      about.set(id, [...(about.get(id) ?? []), each])
  return [...about.values()].flatMap((all) => {
    const some = all.slice(0, eachMax)
    const textOf = (left: ReadonlyArray<Past>) => JSON.stringify(left.reduce(fold, emptyList))
    const text = textOf(some)
    const tried = some
      .slice(0, -1)
      .filter((each) => idsIn(each).length === 1 && replacedIn(each).length === 0)
    return oneByOne(some, tried, (left) => textOf(left) === text)
  })
}
