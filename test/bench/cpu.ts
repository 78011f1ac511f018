// CPU time of processes, from /proc (Linux).
import { readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"

const ticksPerSecond = 100
const idleShare = 0.1
const lookMillis = 200

/** User and system time of a process, its ended children left out. */
export const cpuSecondsOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** Resolves once these processes have next to nothing to do; rejects after the timeout. */
export const idle = async (pids: ReadonlyArray<number>, timeoutMillis = 60_000): Promise<void> => {
  const end = performance.now() + timeoutMillis
  const total = () => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0)
  for (let before = total(); ; before = total()) {
    await sleep(lookMillis)
    if (total() - before < (idleShare * lookMillis) / 1000) return
    if (performance.now() > end) throw new Error(`still busy after ${timeoutMillis} ms`)
  }
}
