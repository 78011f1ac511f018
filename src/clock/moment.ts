// One moment by both clocks of a process.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { monotonicMillis } from "./monotonic.ts"

export interface Moment {
  /** Milliseconds since the epoch, by the clock of the service: to compare with stored times. */
  readonly at: number
  /** By the monotonic clock: to measure waits of this process. */
  readonly monotonic: number
}

export const moment: Effect.Effect<Moment> = Effect.zipWith(
  Clock.currentTimeMillis,
  monotonicMillis,
  (at, monotonic) => ({ at, monotonic })
)

/** The monotonic time of a stored one. */
export const monotonicOf = ({ at, monotonic }: Moment, time: number): number =>
  monotonic - (at - time)
