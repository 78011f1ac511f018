// Judges whether broadcasts are planned, delivered and counted: by the readers of the streams,
// their messages that are due, and the roles that processes run. Pure.
import type { Processes, RoleState, Work } from "#nats/connection/processes.ts"
import type { ConsumerHealth } from "#nats/watch/upkeep.ts"

/**
 * How long messages may be due while none ends. Longer than a restart of all workers, and than the
 * longest attempt of a push (`BELLCAST_PUSH_TIMEOUT_MILLIS` is a minute at most).
 */
export const stalledMillisMax = 120_000
/** How long NATS may refuse messages to a process. Longer than the election of a leader. */
export const refusedMillisMax = 60_000
/**
 * How long nobody may run a role. Longer than a restart of its only process: that serves on for
 * 5 s, drains for 20 s at most, and starts.
 */
export const absentMillisMax = 60_000

/** The role that reads as each durable consumer and follower. */
const roleOf: Readonly<Record<string, RoleState["role"]>> = {
  planner: "fanout",
  deliver: "delivery",
  limited: "delivery",
  retry: "delivery",
  states: "delivery",
  projector: "projection",
  tally: "tally"
}

/** A durable consumer or a follower. */
export interface ReaderState {
  readonly reader: string
  /** Messages that are not acknowledged, or behind the checkpoint. */
  readonly messages: number
  /** For how long the first message is stored that no process took; undefined: all were taken. */
  readonly dueMillis: number | undefined
  readonly work: Omit<Work, "reader">
  /** Of a consumer: whether somebody deleted or paused it, and whether NATS gives out no more. */
  readonly consumer: Pick<ConsumerHealth, "cappedAt" | "trouble"> | undefined
  /** Processes that run its role. */
  readonly processes: number
  /** What NATS refused to this process last, and how long ago. */
  readonly refusal: { readonly reason: string; readonly millis: number } | undefined
}

/** For how long something is due and nothing ended; 0: nothing is due. */
const stalledMillis = ({ dueMillis = 0, work }: ReaderState): number =>
  Math.min(Math.max(dueMillis, work.takenMillis), work.endedMillis)

/** Why nothing ends although something is due, with what helps. */
const causeOf = (state: ReaderState, seconds: number): string => {
  const { consumer, processes, reader, refusal, work } = state
  const role = roleOf[reader]
  if (processes === 0) return `no process runs the role ${role}: start one (BELLCAST_ROLES)`
  if (consumer?.cappedAt !== undefined)
    return (
      `${consumer.cappedAt} messages are not acknowledged, and NATS gives out no more: raise ` +
      "max_ack_pending of jetstream.limits or of the account"
    )
  if (work.reason !== undefined) return `messages are taken and none ends: ${work.reason}`
  if (refusal !== undefined && refusal.millis < seconds * 1000)
    return `NATS refused this process something: ${refusal.reason}`
  return `${processes} processes run the role ${role}: their logs may say why`
}

/** Why a reader makes no progress, in words; undefined: it does, or nothing is due. */
export const troubleOf = (state: ReaderState): string | undefined => {
  const { consumer, messages, reader, work } = state
  const trouble = consumer?.trouble
  // A consumer that was changed still delivers, and is changed back.
  if (trouble === "missing" || trouble === "paused") return `${reader} is ${trouble}`
  if (work.refusedMillis >= refusedMillisMax)
    return (
      `${reader}: NATS has refused messages to a process for ` +
      `${Math.round(work.refusedMillis / 1000)} s, whose log says why`
    )
  const millis = stalledMillis(state)
  if (millis < stalledMillisMax) return undefined
  const seconds = Math.round(millis / 1000)
  return `${reader}: ${messages} wait and none ended for ${seconds} s; ${causeOf(state, seconds)}`
}

/**
 * That NATS refused a subscription within the last minute, in words; undefined: it did not. Whoever
 * subscribed waits for messages that do not come.
 */
export const subscriptionFault = (refusal: ReaderState["refusal"]): string | undefined =>
  refusal !== undefined && refusal.millis < refusedMillisMax && /subscription/i.test(refusal.reason)
    ? `NATS refused this process a subscription: ${refusal.reason}`
    : undefined

/** The role that nobody runs, in words; undefined: there is none. */
export const rolesFault = ({
  isKnown,
  states
}: Pick<Processes["Service"], "isKnown" | "states">): string | undefined => {
  if (!isKnown())
    return (
      "NATS does not bring back what this process publishes on bellcast.sys.process: permit its " +
      "login to publish and subscribe to bellcast.sys.>"
    )
  const absent = states().filter(({ absentMillis }) => absentMillis >= absentMillisMax)
  if (absent.length === 0) return undefined
  const roles = absent.map(({ role }) => role).join(", ")
  const seconds = Math.round(Math.max(...absent.map(({ absentMillis }) => absentMillis)) / 1000)
  return `no process runs the role ${roles} (for ${seconds} s): start one (BELLCAST_ROLES)`
}

/** Processes that run the role of a reader. */
export const processesOf = (reader: string, states: ReadonlyArray<RoleState>): number =>
  states.find(({ role }) => role === roleOf[reader])?.processes ?? 0
