// Metrics of the whole service, read from NATS: backlog, and space in streams and buckets.
import { type MessageType, messages } from "#domain/messages/table.ts"
import { consumers } from "#streams/index.ts"
import { counter, gauge, readCounter } from "./series.ts"

const messageNames = Object.keys(messages) as ReadonlyArray<MessageType>

const showOldest = gauge(
  "bellcast_oldest_push_age_seconds",
  "How long ago the oldest broadcast was accepted of which pushes wait, first tries or " +
    "others; 0 where none waits. Of the whole service"
)
const showKnown = gauge(
  "bellcast_backlog_known",
  "0 while NATS cannot be read: the backlog is that of the last reading, and the age grows on"
)
const showMessages = gauge(
  "bellcast_backlog_messages",
  "Messages that a durable consumer or a follower did not finish. Of the whole service"
)
const showAge = gauge(
  "bellcast_backlog_age_seconds",
  "How long ago the oldest message was stored that no process took from a durable consumer, or " +
    "that a follower did not apply; 0: there is none. Of the whole service"
)
const countAppended = readCounter(
  "bellcast_stream_messages_total",
  "Messages ever appended to a stream. Of the whole service"
)
const showBytes = gauge(
  "bellcast_stream_bytes",
  "Bytes that a stream, or the stream behind a bucket, holds. Of the whole service"
)
const showBytesMax = gauge(
  "bellcast_stream_bytes_max",
  "Bytes a stream may hold; full, it refuses. Of the whole service"
)
const showFull = gauge(
  "bellcast_stream_full",
  "1 while requests get 507 because a stream has too little room for what is refused: what users " +
    "store, looks of operators, all growth. Of the whole service"
)
const showCurrent = gauge(
  "bellcast_stream_copies",
  "Copies of a stream that are current. Of the whole service"
)
const showWanted = gauge(
  "bellcast_stream_copies_wanted",
  "Copies that a stream should have. Of the whole service"
)
const showHeartbeat = gauge(
  "bellcast_heartbeat",
  "1 while a check of the heartbeat is well, 0 while it fails"
)
const showProcesses = gauge(
  "bellcast_role_processes",
  "Processes that run a role. Of the whole service"
)
const showTrouble = gauge(
  "bellcast_nats_trouble",
  "1 while NATS stores nothing although this process reaches it, by what is wrong: frozen, " +
    "disabled, leaderless, unknown"
)
const showAhead = gauge(
  "bellcast_clock_ahead_seconds",
  "How far the clock of this machine is ahead of that of NATS; negative: behind"
)
const facts = [
  "broadcast.finished",
  "command.rejected",
  "retry",
  "subscription.cleared",
  "subscription.gone",
  "subscription.struck",
  "subscription.suspended",
  "subscription.taken"
] as const
/** The type of a message that is postponed where it cannot be stored. */
export type PostponedType = (typeof facts)[number]

const countPostponed = counter(
  "bellcast_facts_postponed_total",
  "Tries to store what follows from an outcome (removals, strikes, retries, ends of " +
    "broadcasts) that found no room or no server, by type; tried again until stored",
  { fact: facts }
)

/** Counts a fact that cannot be stored now. `type`: that of its message. */
export const factPostponed = (fact: PostponedType): void => countPostponed({ fact }, 1)

const stages = ["planner", "projector"] as const
const countRejected = counter(
  "bellcast_commands_rejected_total",
  "Commands and broadcasts in LOG that were rejected, with the reason as a fact in LOG, by the " +
    "stage that rejected them",
  { stage: stages }
)

/** Counts a command that is rejected for good. */
export const commandRejected = (stage: (typeof stages)[number]): void => countRejected({ stage }, 1)

const countDeleted = counter(
  "bellcast_log_messages_deleted_total",
  "Messages of LOG from before the history that this process deleted, as nothing rested on them",
  {}
)

/** Counts a message that was deleted from LOG because of its age. */
export const logMessageDeleted = (): void => countDeleted({}, 1)

const countUnreadable = counter(
  "bellcast_unreadable_messages_total",
  "Times that this process met a message in LOG or WORK that only a later version reads, by the " +
    "name of the message",
  { message: messageNames }
)

/** Counts a message that only a later version reads. */
export const messageUnreadable = (message: MessageType): void => countUnreadable({ message }, 1)

const showWorking = gauge(
  "bellcast_consumer_working",
  "1 while a durable consumer is there, neither paused nor changed; 0 while not. Of the whole " +
    "service"
)
const repairs = ["made again", "resumed", "changed back"] as const
const addRepair = counter(
  "bellcast_consumer_repairs_total",
  "Consumers that this process made again, resumed or changed back",
  { consumer: consumers.map(({ consumer: { name } }) => name), repair: repairs }
)

/** The backlog, as the streams and consumers report it. */
export interface BacklogState {
  /** When the oldest broadcast with pushes that wait was accepted, in milliseconds since 1970. */
  readonly oldestAt: number | undefined
  /** Of each durable consumer and follower. `dueAt`: of the oldest message that nobody took. */
  readonly readers: ReadonlyArray<{
    readonly reader: string
    readonly messages: number
    readonly dueAt: number | undefined
  }>
  readonly appended: ReadonlyArray<{ readonly stream: string; readonly messages: number }>
}

const counted = new Map<string, number>()

/**
 * Shows the backlog, always as numbers: comparisons with NaN are false, so alerts would be silent.
 * `known`: NATS was read, and the state is that of `now` (milliseconds since 1970).
 */
export const showBacklog = (state: BacklogState, known: boolean, now: number): void => {
  const { oldestAt = now } = state
  showOldest({}, Math.max(0, now - oldestAt) / 1000)
  showKnown({}, known ? 1 : 0)
  for (const { dueAt = now, messages, reader } of state.readers) {
    showMessages({ reader }, messages)
    showAge({ reader }, Math.max(0, now - dueAt) / 1000)
  }
  for (const { messages, stream } of state.appended) {
    // If the stream was made anew, the count starts from 0 again.
    countAppended({ stream }, Math.max(0, messages - (counted.get(stream) ?? 0)))
    counted.set(stream, messages)
  }
}

/** How full a stream, or the stream behind a bucket, is. */
export interface Room {
  readonly stream: string
  readonly bytes: number
  readonly bytesMax: number
}

export const showRoom = ({ bytes, bytesMax, stream }: Room): void => {
  showBytes({ stream }, bytes)
  showBytesMax({ stream }, bytesMax)
}

/** Shows whether something is refused because of a stream. */
export const showRefusal = (stream: string, refused: string, isRefused: boolean): void =>
  showFull({ stream, refused }, Number(isRefused))

/** Shows how many copies of each stream there are. */
export const showCopies = (
  copies: ReadonlyArray<{
    readonly stream: string
    readonly current: number
    readonly wanted: number
  }>
): void => {
  for (const { current, stream, wanted } of copies) {
    showCurrent({ stream }, current)
    showWanted({ stream }, wanted)
  }
}

export const showChecks = (view: Readonly<Record<string, boolean>>): void => {
  for (const [check, isWell] of Object.entries(view)) showHeartbeat({ check }, Number(isWell))
}

export const showRoles = (
  states: ReadonlyArray<{ readonly role: string; readonly processes: number }>
): void => {
  for (const { processes, role } of states) showProcesses({ role }, processes)
}

/** Shows each kind of trouble, and which one NATS has. Undefined: none. */
export const showNatsTrouble = (kinds: ReadonlyArray<string>, now: string | undefined): void => {
  for (const kind of kinds) showTrouble({ kind }, Number(kind === now))
}

export const showClockAhead = (millis: number): void => showAhead({}, millis / 1000)

/** Counts the repair of a consumer that somebody deleted, paused or changed. */
export const countRepair = (consumer: string, repair: (typeof repairs)[number]): void =>
  addRepair({ consumer, repair }, 1)

/** Shows whether the consumers work. */
export const showConsumers = (
  states: ReadonlyArray<{ readonly consumer: string; readonly trouble: string | undefined }>
): void => {
  for (const { consumer, trouble } of states)
    showWorking({ consumer }, Number(trouble === undefined))
}
