// Runs `bellcast VERB …` in the process of the test: half a second of CPU time cheaper than a
// process. Signals, the terminal and the exit of a process are tested with spawn-cli.ts.
import { format } from "node:util"
import { Console, Effect } from "effect"
import { exitCodeOf, runVerb } from "#cli/verbs.ts"
import { layerOf, readSource } from "#settings/source.ts"
import { settingsFile } from "./service.ts"
import { idOf } from "./users.ts"

/** Resolves with the exit code and all that the verb has printed. */
export const runCli = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
) => {
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

/** Grants or revokes the right to publish on a channel. `user`: the name of a basic user. */
export const permit = async (
  natsUrl: string,
  verb: "grant" | "revoke",
  channel: string,
  user: string
) => {
  const { code, stderr } = await runCli([
    ...["permissions", verb, channel, idOf(user)],
    ...["--nats", natsUrl]
  ])
  if (code !== 0) throw new Error(`permissions ${verb}: ${stderr}`)
}

/** Makes an access token for an hour, and returns it with what the verb says of it. */
export const createToken = async (
  natsUrl: string,
  name: string,
  ...args: ReadonlyArray<string>
) => {
  const all = ["token", "create", name, "--expires", "1h", ...args, "--nats", natsUrl]
  const { stderr, stdout } = await runCli(all)
  if (!stdout.startsWith("bellcast_")) throw new Error(`no token: ${stderr}`)
  return { token: stdout.trim(), said: stderr }
}
