// Memory and descriptors of every process stay level over the cycles that it lives.
import { readdirSync, readFileSync } from "node:fs"
import type { Check, Look } from "./check.ts"

interface Sample {
  readonly cycle: number
  readonly rssMib: number
  readonly descriptors: number
}

/** By name and process id, over the whole run. */
const samples = new Map<string, Array<Sample>>()

const measure = (pid: number, cycle: number): Sample | undefined => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    const rssMib = Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024)
    return { cycle, rssMib, descriptors: readdirSync(`/proc/${pid}/fd`).length }
  } catch {
    return undefined
  }
}

/**
 * A process of the service that holds a few thousand subscriptions; nats-server with its streams.
 */
const rssMibMax = 900
/**
 * A push over HTTP/1.1 takes a connection, and each push service may have 512 under way: two of
 * them at once, when a healed process sends what has waited (622 seen). Growth finds a leak.
 */
const descriptorsMax = 1_200
/** Caches and V8's heap grow until they are warm. */
const warmCycles = 2
const growthMibMax = 150
const growthDescriptorsMax = 60

const judge = (name: string, history: ReadonlyArray<Sample>): ReadonlyArray<string> => {
  const last = history.at(-1)!
  const violations: Array<string> = []
  if (last.rssMib > rssMibMax) violations.push(`${name}: ${last.rssMib} MiB`)
  if (last.descriptors > descriptorsMax) violations.push(`${name}: ${last.descriptors} descriptors`)
  const warm = history[warmCycles]
  if (warm === undefined || last === warm) return violations
  const cycles = last.cycle - warm.cycle
  if (last.rssMib - warm.rssMib > growthMibMax)
    violations.push(`${name}: ${warm.rssMib} to ${last.rssMib} MiB in ${cycles} cycles`)
  if (last.descriptors - warm.descriptors > growthDescriptorsMax)
    violations.push(`${name}: ${warm.descriptors} to ${last.descriptors} descriptors`)
  return violations
}

export const resources: Check = {
  name: "memory and descriptors are level",
  run: async (look: Look) => {
    const pids: ReadonlyArray<readonly [string, number | undefined]> = [
      ...look.fleet.map(({ name, pid }) => [name, pid] as const),
      ...Object.entries(look.serverPids)
    ]
    return pids.flatMap(([name, pid]) => {
      const sample = pid === undefined ? undefined : measure(pid, look.cycle)
      if (sample === undefined) return []
      look.figures.rssMax = Math.max(look.figures.rssMax, sample.rssMib)
      look.figures.descriptorsMax = Math.max(look.figures.descriptorsMax, sample.descriptors)
      const key = `${name}/${pid}`
      const history = [...(samples.get(key) ?? []), sample]
      samples.set(key, history)
      return judge(name, history)
    })
  }
}
