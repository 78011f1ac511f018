// What happens when an error reaches nobody: the state of the process is unknown, so the process
// logs the error, finishes what it has in hand, and ends. Whatever supervises it starts it again.
import { Effect, type Layer } from "effect"

/** An error that comes again and again must not fill the log while the process drains. */
const loggedMax = 10
/** How long requests and pushes in hand may take. */
const drainMillisMax = 10_000

/**
 * Watches for errors that nobody caught. Returns whether there was one: the exit code must then not
 * be 0.
 */
export const watchUncaught = (logging: Layer.Layer<never>): (() => boolean) => {
  let met = 0
  process.on("uncaughtException", (error) => {
    met += 1
    if (met > loggedMax) return
    const line = Effect.logFatal("an error that nobody caught: the process drains and ends", error)
    void Effect.runPromise(Effect.provide(line, logging))
    if (met > 1) return
    setTimeout(() => process.exit(1), drainMillisMax)
    process.kill(process.pid, "SIGTERM")
  })
  return () => met > 0
}
