// Runs a command to its end, with a timeout. A failure becomes one line that says why.
import { type ExecFileException, execFile } from "node:child_process"

export interface CommandOptions {
  /** PATH for the command and its children. */
  readonly path: string
  readonly timeoutMillis: number
  readonly signal: AbortSignal
}

/** The line that says why: apt's "E: ...", else the last one. */
const reasonInStderr = (stderr: string): string | undefined => {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "")
  return (lines.find((line) => line.startsWith("E: ")) ?? lines.at(-1))?.trim().slice(0, 200)
}

const failureOf = (
  command: string,
  error: ExecFileException,
  stderr: string,
  timeoutMillis: number
): string => {
  if (error.killed) return `${command} did not end within ${timeoutMillis / 1000} s`
  if (error.code === 127)
    return command.includes("/") ? `${command} does not exist` : `no ${command} on PATH`
  return reasonInStderr(stderr) ?? `${command} ended with ${error.code ?? error.signal}`
}

/**
 * Resolves with standard output; rejects with one line. The command is started through
 * /usr/bin/env, which looks it up on the given PATH instead of this process's own.
 */
export const outputOf = (
  command: string,
  args: ReadonlyArray<string>,
  options: CommandOptions
): Promise<string> =>
  new Promise((resolve, reject) => {
    const { path, timeoutMillis, signal } = options
    const words = [`PATH=${path}`, "LC_ALL=C", command, ...args]
    execFile(
      "/usr/bin/env",
      words,
      { timeout: timeoutMillis, signal, killSignal: "SIGKILL", maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(failureOf(command, error, stderr, timeoutMillis)))
      }
    )
  })
