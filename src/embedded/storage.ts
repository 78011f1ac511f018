// The storage of the embedded nats-server: how many bytes JetStream may reserve on this disk.
import { readdir, readFile, stat, statfs } from "node:fs/promises"
import { join } from "node:path"

/**
 * Share of the disk for JetStream, as nats-server's own default. The rest is for what streams take
 * beyond their limits (deleted messages, indexes, states of consumers) and for logs.
 */
const diskShare = 3 / 4

export interface Disk {
  readonly freeBytes: number
  /** Bytes of the files in the store. nats-server's default forgets them after each restart. */
  readonly usedBytes: number
  /**
   * Limits of the streams in the store. With less than this, nats-server refuses to create or to
   * update any stream.
   */
  readonly reservedBytes: number
}

/** Bytes for `max_file_store`. */
export const storageBytes = ({ freeBytes, reservedBytes, usedBytes }: Disk): number =>
  Math.max(reservedBytes, Math.floor((freeBytes + usedBytes) * diskShare))

/** nats-server's file with the config of a stream. */
const configFile = "meta.inf"
/** Files read at once. */
const atOnce = 64

const limitIn = async (file: string): Promise<number> => {
  try {
    const { max_bytes } = JSON.parse(await readFile(file, "utf8")) as { max_bytes?: number }
    return Math.max(0, max_bytes ?? 0)
  } catch {
    // The config of a consumer has the same name and no limit, or the file is damaged.
    return 0
  }
}

/** Reads the disk of a store. A missing store is empty. */
export const diskOf = async (store: string, parent: string): Promise<Disk> => {
  const { bavail, bsize } = await statfs(parent)
  const entries = await readdir(store, { recursive: true, withFileTypes: true }).catch(() => [])
  const files = entries.filter((entry) => entry.isFile())
  let usedBytes = 0
  let reservedBytes = 0
  for (let i = 0; i < files.length; i += atOnce) {
    const some = files.slice(i, i + atOnce).map((file) => join(file.parentPath, file.name))
    const sizes = await Promise.all(some.map((file) => stat(file).catch(() => ({ size: 0 }))))
    const configs = some.filter((file) => file.endsWith(`/${configFile}`))
    for (const { size } of sizes) usedBytes += size
    for (const limit of await Promise.all(configs.map(limitIn))) reservedBytes += limit
  }
  return { freeBytes: bavail * bsize, usedBytes, reservedBytes }
}
