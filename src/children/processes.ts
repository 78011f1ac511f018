// How many processes deliver, and when there are more than one: while the event loop of a single
// one is busy with pushes, and for five minutes after.
import { readFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { memoryLimit } from "#telemetry/process-metrics.ts"

const mebibyte = 1024 ** 2
/** A process with all roles takes nearly so much in a broadcast to 100,000. */
const firstBytes = 400 * mebibyte
/** Beside others, each took 316 to 346 MiB in broadcasts to 10,000 (`make bench ARGS=cores`). */
const deliveringBytes = 350 * mebibyte

/** The bounds that the machine, or the control group, sets this process. */
export interface Machine {
  readonly cores: number
  readonly memoryBytes: number
}

export const ownMachine = (): Machine => ({
  cores: Math.min(availableParallelism(), coresOfGroup()),
  memoryBytes: memoryLimit()
})

/**
 * The cores that the control group of this process, and those above it, may use (Linux). Node.js
 * 24 counts those that it may run on, and not how long. `root`: of the system's files.
 */
export const coresOfGroup = (root = "/"): number => {
  const groups = readText(join(root, "proc/self/cgroup")).matchAll(/^\d+:([^:]*):(.*)$/gm)
  const limits = [...groups].flatMap(([, controllers = "", path = ""]) => {
    const isOfAll = controllers === ""
    if (!isOfAll && !controllers.split(",").includes("cpu")) return []
    const mounts = isOfAll ? ["", "unified"] : [controllers, "cpu"]
    const parts = path.split("/")
    // Within a container the path may be that of the machine: the group is the root then.
    const above = parts.map((_, i) => parts.slice(0, i + 1).join("/"))
    return mounts.flatMap((mount) =>
      above.map((each) => coresIn(join(root, "sys/fs/cgroup", mount, each)))
    )
  })
  return Math.min(...limits)
}

/** `cpu.max` says microseconds of each period, or max; the files of version 1 say -1 for max. */
const coresIn = (folder: string): number => {
  const [quota = "", period = ""] = readText(join(folder, "cpu.max")).split(" ")
  const share = Number(quota || readText(join(folder, "cpu.cfs_quota_us")))
  const whole = Number(period || readText(join(folder, "cpu.cfs_period_us")))
  return share > 0 && whole > 0 ? share / whole : Number.POSITIVE_INFINITY
}

/** The text of a file; empty: there is none. */
const readText = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

/** The default of BELLCAST_DELIVERY_PROCESSES. */
export const processesFor = ({ cores, memoryBytes }: Machine): number =>
  Math.max(1, Math.floor(Math.min(cores, (memoryBytes - firstBytes) / deliveringBytes)))

/** The work of a process since the last look. */
export interface Activity {
  /** The share of the time in which its event loop was active: 0 to 1. */
  readonly busy: number
  /** Attempts to send a push. */
  readonly attempts: number
}

/** A process alone that is this busy has no time for more pushes. */
const busyMin = 0.7
/** Fewer in a second are not what keeps an event loop busy: requests do. */
const attemptsMin = 200
/** All processes together that are less busy are more than are needed. */
const neededMin = 0.5
/** How long they are kept then: a start costs half a second of CPU. */
export const idleMillisMax = 5 * 60_000

/** Decides when children begin and end. Times are those of the monotonic clock. */
export class Load {
  #neededAt = Number.NEGATIVE_INFINITY

  /** Whether a process alone needs children. */
  begins({ attempts, busy }: Activity, now: number): boolean {
    if (busy < busyMin || attempts < attemptsMin) return false
    this.#neededAt = now
    return true
  }

  /** Whether the children of a process are to end. `all`: the process and its children. */
  ends(all: ReadonlyArray<Activity>, now: number): boolean {
    const sum = (read: (each: Activity) => number) => all.reduce((so, each) => so + read(each), 0)
    const isNeeded = sum(({ attempts }) => attempts) > 0 && sum(({ busy }) => busy) >= neededMin
    if (isNeeded) this.#neededAt = now
    return now - this.#neededAt >= idleMillisMax
  }
}

/** After so many deaths in a row something is wrong that a start does not mend. */
export const deathsMax = 5
const againMillisMin = 1_000
/** How long no children begin then. One that lived so long starts the count anew. */
export const restMillis = 10 * 60_000

/** The wait before a child is started again that died for this many times in a row. */
export const againMillis = (deaths: number): number => againMillisMin * 2 ** (deaths - 1)
