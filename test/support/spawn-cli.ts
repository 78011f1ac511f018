// Runs `bellcast VERB …` as its users do: a process whose lines can be waited for. In a run of
// vitest the process runs a bundle of the sources (bundle.ts).
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileOf } from "./bundle.ts"
import { Condition } from "./condition.ts"
import { settingsFile } from "./service.ts"

/** Starts the command line with these arguments; it is killed on dispose if it still runs. */
export const spawnCli = async (
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {},
  cwd?: string
) => {
  const environment = { ...process.env, ...settingsFile(cwd), ...env }
  const child = spawn(process.execPath, [await fileOf("cli"), ...args], {
    env: environment,
    cwd,
    stdio: ["ignore", "pipe", "pipe"]
  })
  const output = { stdout: "", stderr: "" }
  const condition = new Condition(() => output)
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (text: string) => {
      output[stream] += text
      condition.changed()
    })
  }
  const closed = once(child, "close")

  return {
    output,
    /** Resolves with the first match in stdout or stderr; rejects after the timeout with both. */
    printed: async (pattern: RegExp, timeoutMillis = 30_000): Promise<RegExpExecArray> => {
      const match = () => pattern.exec(output.stdout) ?? pattern.exec(output.stderr)
      await condition.waitFor(
        () => match() !== null,
        timeoutMillis,
        () => `no ${pattern} in ${JSON.stringify(output)}`
      )
      return match()!
    },
    /** Exit code, once it has ended and all its output is here; null when a signal ended it. */
    exit: async (): Promise<number | null> => (await closed)[0],
    hangUp: () => child.kill("SIGHUP"),
    interrupt: () => child.kill("SIGINT"),
    terminate: () => child.kill("SIGTERM"),
    kill: () => child.kill("SIGKILL"),
    /** Closes the pipe that it prints to, as `| head` does. */
    leave: () => child.stdout.destroy(),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL")
      await closed
    }
  }
}
