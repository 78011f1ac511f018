// The states of a broadcast, the changes that are possible, the facts that record them, and what
// they mean for a job. Pure.
import * as Schema from "effect/Schema"
import { BroadcastBody, Parts, Rate } from "./broadcast.ts"

/**
 *   scheduled ─────┐              waits for its start
 *   ▼              ▼
 *   running ──▶ cancelled         for ever: no push is sent any more
 *   │  ▲ └────▶ finished          every push has a fate
 *   ▼  │
 *   paused ──▶ cancelled
 *
 * And `rejected`: the planner found that it cannot be sent, also one that is to wait for its start.
 */
export const BroadcastState = Schema.Literals([
  "scheduled",
  "running",
  "paused",
  "cancelled",
  "finished",
  "rejected"
])
export type BroadcastState = typeof BroadcastState.Type

/** The states that a request may ask for. */
export const WantedState = Schema.Literals(["running", "paused", "cancelled"])
export type WantedState = typeof WantedState.Type

const possible: Readonly<Record<BroadcastState, ReadonlyArray<WantedState>>> = {
  // Only its time starts a broadcast.
  scheduled: ["cancelled"],
  running: ["paused", "cancelled"],
  paused: ["running", "cancelled"],
  cancelled: [],
  finished: [],
  rejected: []
}

export const mayBecome = (state: BroadcastState, wanted: WantedState): boolean =>
  possible[state].includes(wanted)

/** The start of a broadcast that was accepted before. Every change of the broadcast repeats it. */
const Schedule = Schema.Struct({
  /** A time of RFC 3339, as the publisher wrote it. */
  at: Schema.String,
  /** Sequence of the change with the present payload. Absent: the broadcast has it. */
  payload: Schema.optionalKey(Schema.Int),
  /** Absent: as the broadcast says. */
  rate: Schema.optionalKey(Rate),
  /** When the server stored the start. Absent: no earlier change is the start. */
  startedAt: Schema.optionalKey(Schema.Int)
})
export type Schedule = typeof Schedule.Type

/** The part that all changes of a state share. */
const Change = {
  broadcast: Schema.Int,
  /** The channel in the subjects of the broadcast. */
  channel: Schema.String,
  /**
   * Jobs of earlier runs are not sent any more. A broadcast begins with run 0; whatever follows a
   * pause has a run of its own.
   */
  run: Schema.Int,
  /**
   * The id of a user, `nats:<source>`, `operator` for the command, `expiry` where the life of a
   * paused broadcast is over, `schedule` at a start, or `pause_when` where too many pushes failed.
   */
  by: Schema.String,
  at: Schema.Int,
  /** Absent: the broadcast started when it was accepted. */
  schedule: Schema.optionalKey(Schedule)
}

/** The broadcast waits for its start, or starts. */
export const BroadcastScheduled = Schema.Struct({ ...Change, schedule: Schedule })
/** Another start, another payload, or both, of a broadcast that has not started. */
export const BroadcastChanged = Schema.Struct({
  ...BroadcastScheduled.fields,
  data: BroadcastBody.fields.data,
  data_by_locale: BroadcastBody.fields.data_by_locale,
  /** Those with the variants that do not fit into this message. */
  parts: Schema.optionalKey(Parts)
})

/** The pushes of a run that were attempted, and those of them that failed. */
export const Because = Schema.Struct({ attempted: Schema.Int, failed: Schema.Int })

export const BroadcastPaused = Schema.Struct({
  ...Change,
  /** When the life of the broadcast is over. */
  expiresAt: Schema.Int,
  /** Absent: somebody paused it. */
  because: Schema.optionalKey(Because)
})
export const BroadcastResumed = Schema.Struct({
  ...Change,
  /** When the server stored the pause. */
  pausedAt: Schema.Int
})
export const BroadcastCancelled = Schema.Struct({
  ...Change,
  /** When the server stored the pause. Absent: the broadcast was not paused at that time. */
  pausedAt: Schema.optionalKey(Schema.Int)
})

/** The fact that the planner rejected a broadcast. */
export const BroadcastRejected = Schema.Struct({
  broadcast: Schema.Int,
  subject: Schema.String,
  reason: Schema.String,
  at: Schema.Int
})

export type StateChange =
  | ({ readonly type: "broadcast.scheduled" } & typeof BroadcastScheduled.Type)
  | ({ readonly type: "broadcast.changed" } & typeof BroadcastChanged.Type)
  | ({ readonly type: "broadcast.started" } & typeof BroadcastScheduled.Type)
  | ({ readonly type: "broadcast.paused" } & typeof BroadcastPaused.Type)
  | ({ readonly type: "broadcast.resumed" } & typeof BroadcastResumed.Type)
  | ({ readonly type: "broadcast.cancelled" } & typeof BroadcastCancelled.Type)

const states = {
  "broadcast.scheduled": "scheduled",
  "broadcast.changed": "scheduled",
  "broadcast.started": "running",
  "broadcast.paused": "paused",
  "broadcast.resumed": "running",
  "broadcast.cancelled": "cancelled"
} as const

/** The change in a message of LOG; undefined: the message is none, or malformed. */
export const changeIn = (message: { readonly type: string }): StateChange | undefined =>
  Object.hasOwn(states, message.type) ? (message as StateChange) : undefined

/**
 * The state that a change led to, as long as the broadcast is not finished. Undefined: no change of
 * a broadcast that started when it was accepted.
 */
export const stateAfter = (
  change: Pick<StateChange, "type"> | undefined
): WantedState | "scheduled" => (change === undefined ? "running" : states[change.type])

/**
 * The state of a broadcast. `change`: the last one; undefined: there was none. `isLater`: it was
 * accepted with a later start. `ended`: why nothing of it changes any more, if that is so.
 */
export const stateOf = (
  change: Pick<StateChange, "type"> | undefined,
  isLater: boolean,
  ended: "finished" | "rejected" | undefined
): BroadcastState => {
  const last = change === undefined && isLater ? "scheduled" : stateAfter(change)
  return last === "cancelled" ? last : (ended ?? last)
}

/** The schedule that a change leaves, which the server stored as `seq` at `storedAt`. */
export const scheduleAfter = (
  change: StateChange,
  { at: startedAt, seq: payload }: { readonly at: number; readonly seq: number }
): Schedule | undefined => {
  const { schedule, type } = change
  if (schedule === undefined) return undefined
  if (type === "broadcast.started") return { ...schedule, startedAt }
  if (type !== "broadcast.changed") return schedule
  const { data, data_by_locale, parts } = change
  const isPayload = (data ?? data_by_locale ?? parts) !== undefined
  return isPayload ? { ...schedule, payload } : schedule
}

/**
 * Whether a change has a broadcast planned that was accepted before: its start, or its end without
 * a start, which nobody gets.
 */
export const isPlannedAt = ({ schedule, type }: StateChange): boolean =>
  type === "broadcast.started" ||
  (type === "broadcast.cancelled" && schedule !== undefined && schedule.startedAt === undefined)

/** The change to `wanted`, from the last one, which the server stored at `storedAt`. */
export const changeTo = (
  wanted: WantedState,
  last: StateChange | undefined,
  storedAt: number,
  about: Omit<typeof BroadcastPaused.Type, "run">
): StateChange => {
  const { because, expiresAt, ...rest } = about
  const run = last?.run ?? 0
  if (wanted === "paused")
    return { type: "broadcast.paused", ...rest, run, expiresAt, ...(because && { because }) }
  const after = { ...rest, run: run + 1 }
  if (wanted === "running") return { type: "broadcast.resumed", ...after, pausedAt: storedAt }
  if (last?.type === "broadcast.paused")
    return { type: "broadcast.cancelled", ...after, pausedAt: storedAt }
  // Not all jobs of a resume may be stored yet.
  return last?.type === "broadcast.resumed"
    ? { type: "broadcast.cancelled", ...after }
    : { type: "broadcast.cancelled", ...rest, run }
}

/**
 * The order for a job. `send`: its pushes are sent. `wait`: they are not, and a resume appends
 * the job again. `old`: a later run has the job. `cancel`: its pushes end as cancelled.
 */
export type Order = "send" | "wait" | "old" | "cancel"

/**
 * `change`: the last one that is known here. A job of a later run proves a resume that is not known
 * yet.
 */
export const orderOf = (change: Pick<StateChange, "type" | "run"> | undefined, run = 0): Order => {
  const state = stateAfter(change)
  if (state === "cancelled") return "cancel"
  if (change === undefined || run > change.run) return "send"
  if (state === "paused") return "wait"
  return run < change.run ? "old" : "send"
}
