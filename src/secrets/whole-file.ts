// Writes files whole, and readable by their owner only: secrets, and files that contain them.
import { randomBytes } from "node:crypto"
import { link, open, rename, rm } from "node:fs/promises"
import { dirname } from "node:path"

/** Writes a new file of mode 0600. On disk when this returns. Fails if the file exists. */
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

/** Makes new names in a folder durable: without it they may be missing after a power cut. */
export const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  await handle.sync().finally(() => handle.close())
}

/** Another name for each call, beside the file. */
export const draftOf = (file: string) => `${file}.${process.pid}.${randomBytes(4).toString("hex")}`

/**
 * Makes a file unless it exists. The text is written to a draft, which is then linked to the name:
 * if several processes do so at once, one wins and the others read its file.
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

/** Replaces a file atomically: readers see the old or the new text. Resolves once it is on disk. */
export const replace = async (file: string, text: string): Promise<void> => {
  const draft = draftOf(file)
  await writeNew(draft, () => text)
  try {
    await rename(draft, file)
    await syncFolder(dirname(file))
  } finally {
    await rm(draft, { force: true })
  }
}
