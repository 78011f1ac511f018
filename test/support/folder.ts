// Folders that a test may fill, and that are gone when it is over.
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/**
 * An empty folder, removed when the test has finished. A server that is just ending may still
 * write to the folder, so the removal is retried for a second.
 */
export const temporaryFolder = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "bellcast-"))
  onTestFinished(() =>
    rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  )
  return folder
}

/** An empty folder with these files, removed when the test has finished. */
export const folderWith = async (files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await temporaryFolder()
  await Promise.all(
    Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text))
  )
  return folder
}

/** The bytes of a file as text; nothing if a server has just removed it. */
const bytesOf = (path: string): Promise<string> =>
  readFile(path, "latin1").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return ""
    throw error
  })

/** The bytes of all files below a folder, as text. */
export const textsBelow = async (folder: string): Promise<string> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  const texts = files.map(({ name, parentPath }) => bytesOf(join(parentPath, name)))
  return (await Promise.all(texts)).join("\n")
}
