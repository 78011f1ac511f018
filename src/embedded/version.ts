// Which nats-server is new enough: reads what `nats-server --version` prints and compares.
import { type RunOptions, run } from "./run.ts"

/** In older ones a stream goes on when its disk fails (nats-server #7788), and before 2.11 per-message TTLs are ignored without a word. */
export const versionMin = "2.14.0"

/** `nats-server: v2.15.1` to `2.15.1`; undefined when it is something else. */
export const parseVersion = (printed: string): string | undefined =>
  /^nats-server: v?(\d+\.\d+\.\d+(?:-[\w.-]+)?)/m.exec(printed)?.[1]

/** Newer than, or the same as, the other; a preview (`2.14.0-RC.1`) is older than what it precedes. */
export const isAtLeast = (version: string, least: string): boolean => {
  const parts = (text: string) => {
    const [numbers = "", preview] = text.split(/-(.*)/s)
    return [...numbers.split(".").map(Number), preview === undefined ? 1 : 0]
  }
  const [mine, theirs] = [parts(version), parts(least)]
  const differs = mine.findIndex((part, index) => part !== theirs[index])
  return differs === -1 || mine[differs]! > theirs[differs]!
}

/** The version of this executable; rejects with the reason when it does not run or is too old. */
export const usableVersion = async (
  file: string,
  options: Pick<RunOptions, "path" | "signal">
): Promise<string> => {
  const printed = await run(file, ["--version"], { ...options, timeoutMillis: 5_000 })
  const version = parseVersion(printed)
  if (version === undefined)
    throw new Error(
      `${file} is not a nats-server: it printed "${printed.split("\n", 1)[0]?.slice(0, 60)}"`
    )
  if (!isAtLeast(version, versionMin))
    throw new Error(`${file} is ${version}, older than ${versionMin}`)
  return version
}
