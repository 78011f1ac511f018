// The two clocks of a process. By the monotonic clock it measures its own waits: the clock of a
// machine may be wrong, and set forward or back at any moment. By the clock of the service, the
// time of the NATS server, every process stores and compares times, so one machine's wrong clock
// changes nothing.
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

const nanosPerMilli = 1_000_000n

/**
 * Whole milliseconds since a moment that only this process knows. Runs on whatever sets the clock.
 */
export const monotonicMillis: Effect.Effect<number> = Effect.map(
  Clock.monotonicTimeNanos,
  (nanos) => Number(nanos / nanosPerMilli)
)

/** After a long turn of the event loop, timers fire early. */
const earlyMillisMax = 50

/**
 * Waits until a whole multiple of `everyMillis`, for 50 ms at least. So the periodic work of a
 * process runs together: each time that an idle process wakes costs 0.2 ms of CPU.
 */
export const nextMultiple = (everyMillis: number): Effect.Effect<void> =>
  Effect.flatMap(monotonicMillis, (now) => {
    const left = everyMillis - (now % everyMillis)
    return Effect.sleep(left < earlyMillisMax ? left + everyMillis : left)
  })

/** One moment by both clocks. */
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

/** The server's time, read by a request. The server read it at some moment of the request. */
export interface Reading {
  /** Milliseconds since the epoch. */
  readonly serverMillis: number
  /** When the request began and ended, by the monotonic clock. */
  readonly began: number
  readonly ended: number
}

const system = Clock.Clock.defaultValue()

/** The clock of the service. Between two readings it runs with the monotonic clock. */
export class ServiceClock implements Clock.Clock {
  readonly #base: Clock.Clock
  /** The time of the service less that of the monotonic clock. */
  #offsetMillis: number

  /** Starts with the time of this machine. `base`: its clocks. */
  constructor(base: Clock.Clock = system) {
    this.#base = base
    this.#offsetMillis = base.currentTimeMillisUnsafe() - this.#monotonicMillis()
  }

  /**
   * Follows the server. Returns by how many milliseconds the time changes: 0 where it was within
   * the bounds of the reading.
   */
  follow({ began, ended, serverMillis }: Reading): number {
    const [least, most] = [serverMillis - ended, serverMillis - began]
    if (this.#offsetMillis >= least && this.#offsetMillis <= most) return 0
    const before = this.#offsetMillis
    this.#offsetMillis = (least + most) / 2
    return this.#offsetMillis - before
  }

  /** How far this machine's clock is ahead, in milliseconds; negative: behind. */
  aheadMillis(): number {
    return this.#base.currentTimeMillisUnsafe() - this.currentTimeMillisUnsafe()
  }

  currentTimeMillisUnsafe(): number {
    return Math.floor(this.#monotonicMillis() + this.#offsetMillis)
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(this.currentTimeMillisUnsafe()) * nanosPerMilli
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.#base.monotonicTimeNanosUnsafe()
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    return this.#base.sleep(duration)
  }

  #monotonicMillis(): number {
    return Number(this.#base.monotonicTimeNanosUnsafe()) / Number(nanosPerMilli)
  }
}
