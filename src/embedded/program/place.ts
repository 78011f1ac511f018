// Where a nats-server is looked for, and how a fetched one is installed.
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { usableVersion } from "./version.ts"

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
