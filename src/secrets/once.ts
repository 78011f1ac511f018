// Files that are written whole and for their owner alone: secrets, and what holds them.
import { randomBytes } from "node:crypto"
import { link, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"

/** Writes a new file of mode 0600; on disk when this returns. Fails when the file exists. */
export const writeNew = async (
  file: string,
  text: () => string | Promise<string>
): Promise<void> => {
  const handle = await open(file, "wx", 0o600)
  try {
    await handle.writeFile(await text())
    await handle.sync()
  } catch (error) {
    await rm(file, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

/** After a power cut, a name that was not synced may be missing. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  await handle.sync().finally(() => handle.close())
}

const draftOf = (file: string) => `${file}.${process.pid}.${randomBytes(4).toString("hex")}`

/**
 * Makes a file that never changes. The text goes to a draft, which is then linked: of several
 * processes that start for the first time, one wins, and all read its file.
 */
export const createOnce = async (file: string, text: string): Promise<void> => {
  const draft = draftOf(file)
  await writeNew(draft, () => text)
  try {
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error
    })
    await syncFolder(dirname(file))
  } finally {
    await rm(draft, { force: true })
  }
}

/** Replaces a file. A process that reads it at the same moment reads the old or the new text. */
export const replace = async (file: string, text: string): Promise<void> => {
  const draft = draftOf(file)
  await writeNew(draft, () => text)
  await rename(draft, file)
}
