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

export const dayMillis = 24 * 60 * 60_000

/** The time before which messages are older than a history of so many days. */
export const endOfHistory = (now: number, days: number): number => now - days * dayMillis

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
interface RegistrationPast {
  readonly messages: ReadonlyArray<Past>
  /** Sequences of the commands that the projector rejected, as facts in LOG say. */
  readonly rejected: ReadonlySet<number>
  /** Messages from this time on stay, in milliseconds since the epoch. */
  readonly before: number
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
  const over = ended.filter(
    ({ end: { at, seq } }) => at < before && seq <= Math.max(since, changed)
  )
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
