// Limits of the embedded nats-server on this machine: memory (GOMEMLIMIT and GOGC, how far its heap
// grows before Go collects) and disk (how many bytes JetStream may reserve).
import { readdir, readFile, stat, statfs } from "node:fs/promises"
import { totalmem } from "node:os"
import { join } from "node:path"

/**
 * Share of the memory for nats-server: a broadcast to a million users took 3.1 GiB of it without a
 * limit. The rest of the memory is for the service and for the system's cache of files. A broadcast
 * to 100,000 takes 500 MiB of the service, by default (delivery/README.md has it for other sizes of
 * its caches).
 */
const memoryShare = 0.6

/**
 * Least limit. The limit is soft: a store that needs more gets more, but Go then collects garbage
 * without a pause (1.8 cores and stalls of 1 s, measured with 1,800 MiB for a million users).
 */
const minimumBytes = 256 * 1024 ** 2

/**
 * GOGC: percent of what is in use by which the heap may grow. A broadcast to 100,000 takes 506 MiB
 * instead of 683 (by Go's default, 100) and a quarter more of nats-server's CPU: a fiftieth of all.
 */
const growthPercent = 50

/** Bytes for GOMEMLIMIT. `groupBytes`: the limit of the control group; 0: unknown. */
export const memoryLimitBytes = (totalBytes: number, groupBytes: number): number => {
  const usable = groupBytes > 0 ? Math.min(totalBytes, groupBytes) : totalBytes
  return Math.max(minimumBytes, Math.floor(usable * memoryShare))
}

/** The environment of nats-server. A GOMEMLIMIT or GOGC that is already set wins. */
export const goEnvironment = (
  environment: Readonly<Record<string, string | undefined>>
): Record<string, string | undefined> => {
  const mebibytes = Math.floor(
    memoryLimitBytes(totalmem(), process.constrainedMemory()) / 1024 ** 2
  )
  return {
    ...environment,
    GOMEMLIMIT: environment["GOMEMLIMIT"] || `${mebibytes}MiB`,
    GOGC: environment["GOGC"] || String(growthPercent)
  }
}

/**
 * Share of the disk for JetStream, as nats-server's own default. The rest is for what streams take
 * beyond their limits (deleted messages, indexes, states of consumers) and for logs.
 */
const diskShare = 3 / 4

interface Disk {
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
