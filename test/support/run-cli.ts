// Runs `bellcast VERB …` in the process of the test: half a second of CPU time cheaper than a
// process. Signals, the terminal and the exit of a process are tested with spawn-cli.ts.
import { format } from "node:util"
import { Console, Effect } from "effect"
import { exitCodeOf, runVerb } from "#cli/verbs.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { settingsFile } from "./service.ts"

const runOnce = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) => {
  const output = { stdout: "", stderr: "" }
  const print =
    (stream: "stdout" | "stderr") =>
    (...parts: ReadonlyArray<unknown>) => {
      output[stream] += `${format(...parts)}\n`
    }
  const console: Console.Console = {
    ...globalThis.console,
    log: print("stdout"),
    error: print("stderr")
  }
  const source = readSource({ ...process.env, ...settingsFile(undefined), ...env })
  const exit = await Effect.runPromiseExit(
    runVerb(args).pipe(
      Effect.provide(layerOf(source)),
      Effect.provideService(Console.Console, console)
    )
  )
  return { code: exitCodeOf(exit), ...output }
}

/**
 * Resolves with the exit code and all that the verb has printed. A verb that lost its lease, since
 * the machine was busy for a second, asks to be run again.
 */
export const runCli = async (...verb: Parameters<typeof runOnce>) => {
  for (let tries = 1; ; tries++) {
    const done = await runOnce(...verb)
    if (tries === 3 || !done.stderr.includes("was lost: run this again")) return done
  }
}
