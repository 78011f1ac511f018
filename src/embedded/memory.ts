// GOMEMLIMIT and GOGC of the embedded nats-server: how far its heap grows before Go collects.
import { totalmem } from "node:os"

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
