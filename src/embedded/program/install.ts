// Judges and installs a nats-server: whether an executable is new enough, and how one that was
// fetched is moved into place. Commands run with a timeout, and a failure becomes one line that
// says why.
import { type ExecFileException, execFile } from "node:child_process"
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises"
import { join } from "node:path"

/** An official release of nats-server. */
export interface Release {
  readonly version: string
  /** Where the releases are, without a slash at the end. */
  readonly url: string
  /** SHA-256 of the archive of each platform, in hex. */
  readonly sha256: Readonly<Record<string, string>>
  /** How long the server may take to answer, redirects included. */
  readonly responseMillisMax: number
}

export interface Place {
  /** BELLCAST_NATS_SERVER. */
  readonly explicit: string | undefined
  readonly path: string
  /** Fetched servers are put here. */
  readonly toolsDir: string
  readonly release: Release
  /** Prints one short line of progress. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/**
 * Calls `fetch` with a new folder, checks that the fetched server runs, and moves it into place.
 * Safe for several callers at once: each has its own folder, and the rename is atomic.
 */
export const install = async (
  place: Place,
  fetch: (folder: string) => Promise<string>
): Promise<string> => {
  await mkdir(place.toolsDir, { recursive: true })
  const folder = await mkdtemp(join(place.toolsDir, "fetch-"))
  try {
    const fetched = await fetch(folder)
    const version = await usableVersion(fetched, place)
    const file = join(place.toolsDir, "nats-server")
    await rename(fetched, file)
    place.say(`nats-server ${version} is now in ${file}`)
    return file
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The version of this executable. Rejects with the reason if it does not run or is too old. */
export const usableVersion = async (
  file: string,
  options: Pick<CommandOptions, "path" | "signal">
): Promise<string> => {
  const printed = await outputOf(file, ["--version"], { ...options, timeoutMillis: 5_000 })
  const version = parseVersion(printed)
  if (version === undefined)
    throw new Error(
      `${file} is not a nats-server: it printed "${printed.split("\n", 1)[0]?.slice(0, 60)}"`
    )
  if (!isAtLeast(version, versionMin))
    throw new Error(`${file} is ${version}, older than ${versionMin}`)
  return version
}

/**
 * Older servers acknowledge messages although the disk fails (nats-server #7788). Servers before
 * 2.11 silently ignore the time to live of single messages.
 */
export const versionMin = "2.14.0"

/** `nats-server: v2.15.1` gives `2.15.1`. Undefined: the text is of another program. */
export const parseVersion = (printed: string): string | undefined =>
  /^nats-server: v?(\d+\.\d+\.\d+(?:-[\w.-]+)?)/m.exec(printed)?.[1]

/** Whether a version is the same or newer. A preview (`2.14.0-RC.1`) is older than its release. */
export const isAtLeast = (version: string, least: string): boolean => {
  const [numbers = "", preview] = version.split("-")
  const order = numbers.localeCompare(least, "en", { numeric: true })
  return order > 0 || (order === 0 && preview === undefined)
}

export interface CommandOptions {
  /** PATH for the command and its children. */
  readonly path: string
  readonly timeoutMillis: number
  readonly signal: AbortSignal
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

/** The line that says why: apt's "E: ...", else the last one. */
const reasonInStderr = (stderr: string): string | undefined => {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "")
  return (lines.find((line) => line.startsWith("E: ")) ?? lines.at(-1))?.trim().slice(0, 200)
}
