// The states of a broadcast, the changes that are possible, the facts that record them, and what
// they mean for a job. Pure.
import * as Schema from "effect/Schema"

/**
 *   running ──▶ finished          every push has a fate
 *   │  ▲ └────▶ cancelled         for ever: no push is sent any more
 *   ▼  │           ▲
 *   paused ────────┘
 */
export const BroadcastState = Schema.Literals(["running", "paused", "cancelled", "finished"])
export type BroadcastState = typeof BroadcastState.Type

/** The states that a request may ask for. */
export const WantedState = Schema.Literals(["running", "paused", "cancelled"])
export type WantedState = typeof WantedState.Type

const possible: Readonly<Record<BroadcastState, ReadonlyArray<WantedState>>> = {
  running: ["paused", "cancelled"],
  paused: ["running", "cancelled"],
  cancelled: [],
  finished: []
}

export const mayBecome = (state: BroadcastState, wanted: WantedState): boolean =>
  possible[state].includes(wanted)

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
   * The id of a user, `nats:<source>`, `operator` for the command, or `expiry` where the life of a
   * paused broadcast is over.
   */
  by: Schema.String,
  at: Schema.Int
}

export const BroadcastPaused = Schema.Struct({
  ...Change,
  /** When the life of the broadcast is over. */
  expiresAt: Schema.Int
})
export const BroadcastResumed = Schema.Struct({
  ...Change,
  /** When the server stored the pause. */
  pausedAt: Schema.Int
})
export const BroadcastCancelled = Schema.Struct({
  ...Change,
  /** When the server stored the last pause. Absent: the broadcast was never paused. */
  pausedAt: Schema.optionalKey(Schema.Int)
})

export type StateChange =
  | ({ readonly type: "broadcast.paused/1" } & typeof BroadcastPaused.Type)
  | ({ readonly type: "broadcast.resumed/1" } & typeof BroadcastResumed.Type)
  | ({ readonly type: "broadcast.cancelled/1" } & typeof BroadcastCancelled.Type)

const states = {
  "broadcast.paused/1": "paused",
  "broadcast.resumed/1": "running",
  "broadcast.cancelled/1": "cancelled"
} as const

/** The change in a message of LOG; undefined: the message is none. */
export const changeIn = (message: { readonly type: string }): StateChange | undefined =>
  Object.hasOwn(states, message.type) ? (message as StateChange) : undefined

/** The state that a change led to, as long as the broadcast is not finished. */
export const stateAfter = (change: StateChange | undefined): WantedState =>
  change === undefined ? "running" : states[change.type]

/** The change to `wanted`, from the last one, which the server stored at `storedAt`. */
export const changeTo = (
  wanted: WantedState,
  last: StateChange | undefined,
  storedAt: number,
  about: Omit<typeof BroadcastPaused.Type, "run">
): StateChange => {
  const { expiresAt, ...rest } = about
  const run = last?.run ?? 0
  if (wanted === "paused") return { type: "broadcast.paused/1", ...rest, run, expiresAt }
  const after = { ...rest, run: run + 1 }
  if (wanted === "running") return { type: "broadcast.resumed/1", ...after, pausedAt: storedAt }
  if (last === undefined) return { type: "broadcast.cancelled/1", ...rest, run }
  // Not all jobs of a resume may be stored yet.
  const pausedAt = "pausedAt" in last ? (last.pausedAt ?? storedAt) : storedAt
  return { type: "broadcast.cancelled/1", ...after, pausedAt }
}

/**
 * The order for a job. `send`: its pushes are sent. `hold`: they are not, and a resume appends
 * the job again. `old`: a later run has the job. `cancel`: its pushes end as cancelled.
 */
export type Order = "send" | "hold" | "old" | "cancel"

/**
 * `change`: the last one that is known here. A job of a later run proves a resume that is not known
 * yet.
 */
export const orderOf = (change: StateChange | undefined, run = 0): Order => {
  const state = stateAfter(change)
  if (state === "cancelled") return "cancel"
  if (change === undefined || run > change.run) return "send"
  if (state === "paused") return "hold"
  return run < change.run ? "old" : "send"
}
