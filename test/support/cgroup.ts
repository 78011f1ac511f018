// A group of processes with a limit of memory, as a container has it. Needs root.
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"

const root = "/sys/fs/cgroup"
const files = existsSync(`${root}/memory`)
  ? { folder: `${root}/memory`, limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes" }
  : { folder: root, limit: "memory.max", usage: "memory.current" }
let made = 0

/** A group without a limit, which a process joins by its environment. */
export const memoryGroup = () => {
  const folder = `${files.folder}/bellcast-test-${process.pid}-${made++}`
  mkdirSync(folder)
  return {
    /** The environment of a process that joins the group at its start. */
    env: {
      NODE_OPTIONS: `--import=${new URL("join-cgroup.ts", import.meta.url).href}`,
      TEST_CGROUP: `${folder}/cgroup.procs`
    },
    /** Allows the group so many bytes more than it uses now. */
    limit: (spareBytes: number): void => {
      const used = Number(readFileSync(`${folder}/${files.usage}`, "utf8"))
      writeFileSync(`${folder}/${files.limit}`, String(used + spareBytes))
    },
    limitTo: (bytes: number): void => writeFileSync(`${folder}/${files.limit}`, String(bytes)),
    /** Takes the limit away, and lets others join. */
    free: (): void =>
      writeFileSync(`${folder}/${files.limit}`, files.limit === "memory.max" ? "max" : "-1"),
    /** Once its processes have ended. */
    remove: (): void => {
      try {
        rmdirSync(folder)
      } catch {
        // A process of the group still ends: the folder stays, and costs nothing.
      }
    }
  }
}
