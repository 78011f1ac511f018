// Ends a process whose event loop stands still for a minute. Such a process serves nobody, does not
// end by SIGTERM, and may take all memory of the machine. Its supervisor starts it again, and other
// processes take over its work as after a crash. Compose restarts no container that is unhealthy.
//
// A thread of the process watches, and counts how often it waited. A frozen process (SIGSTOP, a
// suspended machine) freezes the thread, too, so that the whole freeze counts as one wait. Another
// process could not tell a freeze from a standstill, and could not end process 1 of a container.
import { url } from "node:inspector"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"

const beatMillis = 5_000
/** Waits without a beat: a minute. */
const missedMax = 12
const message =
  "the event loop stood still for a minute: the process ends itself, without a drain. " +
  "Its supervisor must start it again"

// Code as text: a file would need the type stripper, which takes memory, too. SIGKILL leaves no
// core dump of the memory, but process 1 ignores it. There a trap ends the process.
const watcher = `
const { beats, name } = require("node:worker_threads").workerData
for (let missed = 0; missed < ${missedMax}; missed++) {
  const before = Atomics.load(beats, 0)
  Atomics.wait(beats, 0, before, ${beatMillis})
  if (before === 0 || Atomics.load(beats, 0) !== before) missed = -1
}
const line = { level: 60, time: Date.now(), process: name, msg: ${JSON.stringify(message)} }
try {
  require("node:fs").writeSync(2, JSON.stringify(line) + "\\n")
} finally {
  process.kill(process.pid, "SIGKILL")
  require("node:v8").setFlagsFromString("--allow-natives-syntax")
  require("node:vm").runInThisContext("%SystemBreak()")
}
`

/**
 * Watches from now on until the process ends: what comes from NATS may stop a process that has just
 * started. A process in which a debugger may halt is not watched, nor one for which the system has
 * no thread: the log says so. The thread takes 12 MiB (Node.js 24; resourceLimits change nothing).
 * `name`: that of this process in its lines of the log; undefined: they have none.
 */
export const endAtStandstill = (logging: Layer.Layer<never>, name?: string): void => {
  const warn = (error: unknown) => {
    const line = Effect.logWarning("nothing watches whether the event loop stands still", error)
    void Effect.runPromise(Effect.provide(line, logging))
  }
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  let count = 0
  const beat = () => {
    count += 1
    Atomics.store(beats, 0, url() === undefined ? count : 0)
  }
  beat()
  setInterval(beat, beatMillis).unref()
  // Neither flags nor preloaded modules of the process are for this thread.
  const workerData = { beats, name }
  const options = { eval: true, name: "standstill", workerData, env: {}, execArgv: [] }
  try {
    new Worker(watcher, options).on("error", warn).unref()
  } catch (error) {
    warn(error)
  }
}
