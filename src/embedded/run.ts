// Runs a command to its end, with a timeout, and turns its failure into one line a person can act on.
import { execFile } from "node:child_process"

export interface RunOptions {
  /** PATH on which the command and its own children are looked up. */
  readonly path: string
  readonly timeoutMillis: number
  readonly signal: AbortSignal
  /** `NAME=value`, on top of the environment of this process. */
  readonly env?: ReadonlyArray<string>
}

/** The line that says why: apt's "E: …", else the last one printed. */
const reasonIn = (stderr: string): string | undefined => {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "")
  return (lines.find((line) => line.startsWith("E: ")) ?? lines.at(-1))?.trim().slice(0, 200)
}

/** Standard output; rejects with one line. `env` finds the command, so that a PATH other than our own can be asked for. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: RunOptions
): Promise<string> =>
  new Promise((resolve, reject) => {
    const { path, timeoutMillis, signal, env = [] } = options
    const words = [`PATH=${path}`, "LC_ALL=C", ...env, command, ...args]
    execFile(
      "/usr/bin/env",
      words,
      { timeout: timeoutMillis, signal, killSignal: "SIGKILL", maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else if (error.killed)
          reject(new Error(`${command} did not end within ${timeoutMillis / 1000} s`))
        else if (error.code === 127)
          reject(
            new Error(command.includes("/") ? `${command} does not exist` : `no ${command} on PATH`)
          )
        else
          reject(
            new Error(reasonIn(stderr) ?? `${command} ended with ${error.code ?? error.signal}`)
          )
      }
    )
  })
