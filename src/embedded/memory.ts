// GOMEMLIMIT of the embedded nats-server: the heap above which Go collects more often.
import { totalmem } from "node:os"

/**
 * Share of the memory. nats-server with a million users takes 3.1 GiB in a broadcast when nothing
 * limits it, as Go lets the heap grow to twice what is in use. The rest is for the service (up to
 * 1 GiB with its cache of subscriptions full) and for the system's cache of files.
 */
const share = 0.6

/**
 * The limit is soft: a store that needs more gets more, but Go then collects all the time (1.8
 * cores and stalls of a second, with 1,800 MiB for a million users). A smaller limit saves little.
 */
const minimumBytes = 256 * 1024 ** 2

/** Bytes of memory, and those that the control group of the process may use (0: not known). */
export const memoryLimitBytes = (totalBytes: number, groupBytes: number): number => {
  const usable = groupBytes > 0 ? Math.min(totalBytes, groupBytes) : totalBytes
  return Math.max(minimumBytes, Math.floor(usable * share))
}

/** The environment of nats-server. GOMEMLIMIT stays as it is where it is set. */
export const goEnvironment = (
  environment: Readonly<Record<string, string | undefined>>
): Record<string, string | undefined> => {
  const mebibytes = Math.floor(
    memoryLimitBytes(totalmem(), process.constrainedMemory()) / 1024 ** 2
  )
  return { ...environment, GOMEMLIMIT: environment["GOMEMLIMIT"] || `${mebibytes}MiB` }
}
