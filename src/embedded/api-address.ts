// Where the HTTP API of the service beside an embedded server listens: a file that the service
// writes and that `bellcast listen` reads.
import { readFile, rm } from "node:fs/promises"
import * as Effect from "effect/Effect"
import { replace } from "#secrets/once.ts"
import { type Folder, runsWith } from "./folder.ts"

/** Writes the file for as long as the scope lives. */
export const announceApi = (folder: Folder, url: string) =>
  Effect.acquireRelease(
    Effect.promise(() => replace(folder.api, `${process.pid} ${url}\n`)),
    () => Effect.promise(() => rm(folder.api, { force: true }))
  )

/** The base URL of the running service. Undefined: none runs, or one that serves no HTTP. */
export const apiAddressIn = async (folder: Folder): Promise<string | undefined> => {
  const text = await readFile(folder.api, "utf8").catch(() => "")
  const [pid = "", url] = text.trim().split(" ")
  // A service that was killed leaves its file behind.
  return url !== undefined && (await runsWith(Number(pid), "main.ts")) ? url : undefined
}
