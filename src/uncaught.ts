// Handles errors that no code caught. The state of the process is then unknown: it logs the error,
// finishes requests and pushes under way, and ends. Its supervisor starts it again.
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

/** Lines at most: a repeated error must not fill the log while the process drains. */
const loggedMax = 10
/** How long requests and pushes under way may take. */
const drainAfterErrorMillisMax = 10_000

/** Watches for uncaught errors. Returns whether there was one: the exit code must then not be 0. */
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
