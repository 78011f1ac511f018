// A process of the service: started, killed, frozen and stopped by its name. Its output goes to a
// file, so that a frozen rig or process holds nobody up.

import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { closeSync, existsSync, openSync, readFileSync, statSync } from "node:fs"
import { devNull } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { nodeFlags } from "../../support/service-process.ts"
import type { Member, Role } from "../faults/fault.ts"
import { flagsOf } from "./programs.ts"

export interface FleetMember extends Member {
  readonly port: number
  readonly logFile: string
  /** The folder of the program that its next start runs. */
  program: string
  /** Starts since the beginning, those by the supervisor included. */
  readonly starts: () => number
  /** Ends that nobody asked for, with their exit codes. */
  readonly unexpectedEnds: ReadonlyArray<number | null>
  /** It runs, and has logged "ready" since its last start. */
  readonly isReady: () => boolean
  /** The last error that it has logged; empty: none. */
  readonly lastError: () => string
}

export interface MemberOptions {
  readonly name: string
  readonly roles: ReadonlyArray<Role>
  readonly port: number
  readonly folder: string
  readonly program: string
  readonly env: Readonly<Record<string, string>>
}

/** Longer than the 21 s within which a process ends. */
const stopMillis = 30_000
/** A supervisor starts a process again that has ended by itself. */
const restartMillis = 1_000

/** Processes must not outlive the rig, however it ends. */
const running = new Set<ChildProcess>()
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})

/** The last line of a log that says why a process ended. */
const lastError = (text: string): string =>
  text
    .split("\n")
    .filter((line) => /Error|cannot start/.test(line))
    .at(-1)
    ?.slice(0, 300) ?? ""

export const makeMember = (options: MemberOptions): FleetMember => {
  const { env, folder, name, port, roles } = options
  const logFile = join(folder, `${name}.log`)
  const unexpectedEnds: Array<number | null> = []
  let child: ChildProcess | undefined
  let wanted = false
  let starts = 0
  let logFrom = 0

  const run = (more: Readonly<Record<string, string>>) => {
    const log = openSync(logFile, "a")
    logFrom = existsSync(logFile) ? statSync(logFile).size : 0
    const flags = [...nodeFlags, ...flagsOf(member.program)]
    const started = spawn(process.execPath, [...flags, join(member.program, "src/main.ts")], {
      cwd: folder,
      env: {
        ...process.env,
        ...env,
        ...more,
        BELLCAST_CONFIG: devNull,
        BELLCAST_ROLES: roles.join(","),
        BELLCAST_PORT: String(port)
      },
      stdio: ["ignore", log, log]
    })
    closeSync(log)
    starts++
    child = started
    running.add(started)
    started.once("exit", (code) => {
      running.delete(started)
      if (child === started) child = undefined
      if (!wanted) return
      unexpectedEnds.push(code)
      setTimeout(() => (wanted && child === undefined ? run(more) : undefined), restartMillis)
    })
  }

  const logged = () => readFileSync(logFile).subarray(logFrom)

  const end = async (signal: NodeJS.Signals) => {
    wanted = false
    if (child === undefined) return
    const exited = once(child, "exit")
    child.kill("SIGCONT")
    child.kill(signal)
    const timer = setTimeout(() => child?.kill("SIGKILL"), stopMillis)
    await exited
    clearTimeout(timer)
  }

  const member: FleetMember = {
    name,
    roles,
    port,
    logFile,
    program: options.program,
    unexpectedEnds,
    starts: () => starts,
    get pid() {
      return child?.pid
    },
    isReady: () => child !== undefined && logged().includes('"msg":"ready"'),
    lastError: () => lastError(readFileSync(logFile, "utf8")),
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    start: async (more = {}) => {
      if (wanted && child !== undefined) return
      wanted = true
      run(more)
      await sleep(1)
    },
    freeze: () => void child?.kill("SIGSTOP"),
    thaw: () => void child?.kill("SIGCONT")
  }
  return member
}
