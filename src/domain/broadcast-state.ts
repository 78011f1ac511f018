// The states of a broadcast, the changes that are possible, and the facts that record them. Pure.
import * as Schema from "effect/Schema"

/**
 *   running ──▶ finished     every push has a fate
 *      └──────▶ cancelled    for ever: no push is sent any more
 */
export const BroadcastState = Schema.Literals(["running", "cancelled", "finished"])
export type BroadcastState = typeof BroadcastState.Type

/** The states that a request may ask for. */
export const WantedState = Schema.Literals(["running", "cancelled"])
export type WantedState = typeof WantedState.Type

export const mayBecome = (state: BroadcastState, wanted: WantedState): boolean =>
  state === "running" && wanted === "cancelled"

/** The fact that somebody cancelled a broadcast. */
export const BroadcastCancelled = Schema.Struct({
  broadcast: Schema.Int,
  /** The channel in the subjects of the broadcast. */
  channel: Schema.String,
  /** The id of a user, `nats:<source>`, or `operator` for the command. */
  by: Schema.String,
  at: Schema.Int
})
