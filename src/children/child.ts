// A child of this process: another process with the same program, settings and flags, and the role
// delivery alone. Its log lines are written among those of this process.
import { type ChildProcess, fork } from "node:child_process"
import { devNull } from "node:os"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import type { Series } from "#telemetry/whole-metrics.ts"
import type { TokenRequest, TokenResponse } from "./group.ts"
import { argumentOf, type ChildPlace, type FromChild, type FromParent } from "./messages.ts"
import type { Activity } from "./processes.ts"

export interface ChildOptions {
  /** The file that it runs. */
  readonly program: string
  readonly place: ChildPlace
  /** The settings of the child, also those that this process read from a file. */
  readonly settings: Readonly<Record<string, string>>
  readonly writeLine: (line: string) => void
  readonly answer: (request: TokenRequest) => Promise<TokenResponse>
}

/** How a child ended. */
export interface Ended {
  readonly code?: number
  readonly signal?: string
  /** Why it could not be started. */
  readonly reason?: string
}

/** Longer than the 20 s after which a process that drains ends itself. */
const stopMillisMax = 22_000
/** The last messages of a child come after its end. */
const lastMillisMax = 1_000

/** A child from its start to its end. */
export class Child {
  readonly ended: Promise<Ended>
  /** The metrics of its last report. */
  series: ReadonlyArray<Series> = []
  #activity: Activity = { busy: 0, attempts: 0 }
  readonly #process: ChildProcess

  constructor({ answer, place, program, settings, writeLine }: ChildOptions) {
    this.#process = fork(program, [argumentOf(place)], {
      env: environmentOf(settings),
      execArgv: withoutFiles(process.execArgv),
      // Not JSON, in which the bounds of histograms cannot be infinite.
      serialization: "advanced",
      stdio: ["ignore", "pipe", "inherit", "ipc"]
    })
    this.ended = endOf(this.#process)
    // Without a free descriptor there is no pipe either.
    const { stdout } = this.#process
    if (stdout) createInterface({ input: stdout }).on("line", writeLine)
    this.#process.on("message", (message: FromChild) => {
      if (message.kind === "report") {
        this.series = message.series
        this.#activity = message.activity
      } else if (message.kind === "token") {
        const { id, request } = message
        void answer(request).then((response) => this.#send({ kind: "token", id, response }))
      }
    })
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  /** The work of the second before its last report. */
  takeActivity(): Activity {
    const activity = this.#activity
    // A child that stands still reports nothing.
    this.#activity = { busy: 0, attempts: 0 }
    return activity
  }

  /** Tells it to drain. */
  tell(): void {
    this.#process.kill("SIGTERM")
  }

  /** Drains it, and resolves when it has ended. */
  async stop(): Promise<void> {
    this.tell()
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), stopMillisMax)
    await this.ended
    clearTimeout(timer)
  }

  #send(message: FromParent): void {
    // A child that ends meanwhile needs no response.
    if (this.#process.connected) this.#process.send(message, () => {})
  }
}

const fileFlags: ReadonlyArray<string | undefined> = ["--env-file", "--env-file-if-exists"]

/**
 * The flags of Node.js without files of variables: this process has read them, and they may have
 * been changed since. The name of a file may be an argument of its own, which Node.js would take
 * for the program of the child.
 */
const withoutFiles = (flags: ReadonlyArray<string>): Array<string> =>
  flags.filter((flag, i) => !flag.startsWith("--env-file") && !fileFlags.includes(flags[i - 1]))

/** The environment of a child. `node --watch` would take its messages for those of a module. */
const environmentOf = (settings: Readonly<Record<string, string>>) => {
  const { WATCH_REPORT_DEPENDENCIES: _, ...environment } = process.env
  // This process read the file of settings: it may have been changed since.
  return { ...environment, ...settings, BELLCAST_CONFIG: devNull }
}

/**
 * Resolves when a child has ended and its last messages are read, or when it could not be started.
 * Never rejects: `error` also says that a signal or a message could not be sent to a child that
 * runs. `once` of Node.js would reject then, and nobody would handle that.
 */
const endOf = async (child: ChildProcess): Promise<Ended> => {
  const failed = new Promise<Ended>((resolve) =>
    child.on("error", ({ message }) => resolve({ reason: message }))
  )
  if (child.pid === undefined) return failed
  const [code, signal] = await emitted(child, "close")
  if (child.connected) await Promise.race([emitted(child, "disconnect"), sleep(lastMillisMax)])
  return typeof signal === "string" ? { signal } : { code: code as number }
}

const emitted = (child: ChildProcess, event: string): Promise<ReadonlyArray<unknown>> =>
  new Promise((resolve) => child.once(event, (...all) => resolve(all)))
