// Whether a nats-server is new enough, from what `nats-server --version` prints.
import { type CommandOptions, outputOf } from "./run.ts"

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
