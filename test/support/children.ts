// The processes that a service has started to deliver.
import { readdirSync, readFileSync } from "node:fs"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // The process ended meanwhile.
    return ""
  }
}

/** Their ids, by /proc (Linux). */
export const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => read(`/proc/${name}/stat`).split(") ")[1]?.split(" ")[1] === String(pid))
    .filter((name) => read(`/proc/${name}/cmdline`).includes("--delivery-process="))
    .map(Number)
