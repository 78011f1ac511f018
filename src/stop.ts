// What ends this process: a signal, an error that nobody caught, or a stream that was replaced
// under it. Load balancers learn of a stop first, requests and pushes under way finish, and the
// process ends in any case.
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { untilOtherForm, untilReplaced } from "#nats/watch/streams.ts"

/**
 * Bound on the drain, in milliseconds: requests take at most 10 s, then pushes and outcomes as
 * long. They normally end earlier, by their timeouts.
 */
const drainMillisMax = 20_000

interface Stop {
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

/** Lines at most: a repeated error must not fill the log while the process drains. */
const loggedMax = 10
/** How long requests and pushes under way may take. */
const drainAfterErrorMillisMax = 10_000

/**
 * Watches for errors that no code caught. The state of the process is then unknown: it logs the
 * error, finishes requests and pushes under way, and ends. Its supervisor starts it again. Returns
 * whether there was one: the exit code must then not be 0.
 */
export const watchUncaught = (logging: Layer.Layer<never>): (() => boolean) => {
  let met = 0
  process.on("uncaughtException", (error) => {
    met += 1
    if (met > loggedMax) return
    const line = Effect.logFatal("an error that nobody caught: the process drains and ends", error)
    void Effect.runPromise(Effect.provide(line, logging))
    if (met > 1) return
    setTimeout(() => process.exit(1), drainAfterErrorMillisMax)
    process.kill(process.pid, "SIGTERM")
  })
  return () => met > 0
}

/**
 * Ends the process when LOG or WORK is replaced under it: caches, leases and checkpoints belong to
 * the former stream, and outcomes must not enter the new one.
 */
export const endWhenReplaced = untilReplaced.pipe(
  Effect.flatMap((reason) =>
    Effect.logFatal(
      `${reason}: this process ends. Stop all processes before you restore streams; ` +
        "the next start says whether they fit together"
    )
  ),
  Effect.andThen(Effect.sync(() => process.exit(1))),
  Effect.forkScoped
)

/**
 * Ends the process when another version makes the buckets again in its form: what this process
 * would read and write there is of no form that the other version knows.
 */
export const endAtOtherForm = untilOtherForm.pipe(
  Effect.flatMap((reason) =>
    Effect.logFatal(
      `${reason}: this process ends. Only processes of the version that makes them can go on`
    )
  ),
  Effect.andThen(Effect.sync(() => process.exit(1))),
  Effect.forkScoped
)
