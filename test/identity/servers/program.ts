// Runs a program that may start others, such as a script that starts Java. All of them end with the
// test, also when the test is killed.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"

export interface Program extends AsyncDisposable {
  /** All that it has printed. */
  readonly output: () => string
}

export interface ProgramOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
  /** Whether the program serves requests. A rejection is a no. */
  readonly isUp: () => Promise<boolean>
  readonly startMillisMax: number
}

/**
 * Starts the program in a process group of its own, and kills the group when the program or this
 * process ends: then the shell reads the end of its standard input.
 */
const supervisor = '{ "$0" "$@" </dev/null; kill -9 0; } & read -r line; kill -9 0'

/** Resolves once the program is up; rejects with its output when it ends or takes too long. */
export const startProgram = async (options: ProgramOptions): Promise<Program> => {
  const { args, command, env = {}, isUp, startMillisMax } = options
  const child = spawn("sh", ["-c", supervisor, command, ...args], {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["pipe", "pipe", "pipe"]
  })
  let output = ""
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text
    })
  let isOver = false
  const exited = once(child, "close").then(() => {
    isOver = true
  })
  const end = async () => {
    child.stdin.end()
    await exited
  }
  const deadline = Date.now() + startMillisMax
  while (!(await isUp().catch(() => false))) {
    if (isOver || Date.now() > deadline) {
      await end()
      throw new Error(`${command} does not start:\n${output}`)
    }
    await sleep(100)
  }
  return { output: () => output, [Symbol.asyncDispose]: end }
}
