// The end of a process that is told to stop: load balancers learn of it first, requests and pushes
// under way finish, and the process ends in any case.
import * as Effect from "effect/Effect"

/**
 * Bound on the drain, in milliseconds: requests take at most 10 s, then pushes and outcomes as
 * long. They normally end earlier, by their timeouts.
 */
const drainMillisMax = 20_000

export interface Stop {
  /** How long requests are still served after SIGTERM, in milliseconds. */
  waitMillis: number
  /** Waits so long if a signal told the process to stop, and it can be trusted to serve. */
  readonly wait: Effect.Effect<void>
  /** Whether a signal told the process to stop. */
  readonly isRequested: () => boolean
}

/**
 * Watches for the signals. Only SIGTERM waits: Ctrl-C is pressed by people, where nothing balances.
 * `isBroken`: an uncaught error ends the process, so that it should not serve on.
 */
export const watchStop = (isBroken: () => boolean): Stop => {
  let isTold = false
  let isRequested = false
  const stop: Stop = {
    waitMillis: 0,
    isRequested: () => isRequested,
    wait: Effect.suspend(() =>
      isTold && !isBroken() ? Effect.sleep(stop.waitMillis) : Effect.void
    )
  }
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.once(signal, () => {
      isRequested = true
      isTold = signal === "SIGTERM"
      const millisMax = drainMillisMax + (isTold ? stop.waitMillis : 0)
      setTimeout(() => process.exit(1), millisMax).unref()
    })
  return stop
}
