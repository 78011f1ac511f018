// Folders that tests may fill, and that are gone when these are over.
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"

/** The texts of files by their names. */
type Files = Readonly<Record<string, string>>

export interface Folder extends AsyncDisposable {
  readonly path: string
}

/**
 * A folder with these files, for several tests: the test that made it removes it. A server that
 * is just ending may still write to the folder, so the removal is retried for a second.
 */
export const makeFolder = async (files: Files = {}): Promise<Folder> => {
  const path = await mkdtemp(join(tmpdir(), "bellcast-"))
  await Promise.all(Object.entries(files).map(([name, text]) => writeFile(join(path, name), text)))
  return {
    path,
    [Symbol.asyncDispose]: () =>
      rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}

/** A folder with these files, removed when the test has finished. */
export const folderWith = async (files: Files): Promise<string> => {
  const folder = await makeFolder(files)
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return folder.path
}

/** An empty folder, removed when the test has finished. */
export const temporaryFolder = (): Promise<string> => folderWith({})

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

/** The permissions of a file or folder as three octal digits. */
export const modeOf = async (path: string): Promise<string> =>
  ((await stat(path)).mode & 0o777).toString(8)
