// Where a nats-server is looked for and put, and how a fetched one gets there whole.
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises"
import { join } from "node:path"
import { usableVersion } from "./version.ts"

export interface Place {
  /** BELLCAST_NATS_SERVER. */
  readonly explicit: string | undefined
  readonly path: string
  /** Ours: what is fetched stays here. */
  readonly toolsDir: string
  /** One short line of progress. */
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/**
 * Lets `fetch` make a server in a folder of its own, checks that it runs, and moves it into place.
 * The rename is atomic and each caller has its own folder, so that callers at the same time do not disturb each other.
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
