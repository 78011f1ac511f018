// How late the event loop of this process is, and how often and how long V8 collects garbage.
import {
  constants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver
} from "node:perf_hooks"

/** Between two measurements. Each wakes the process: ten a second would cost 0.05 % of a core. */
const resolutionMillis = 250
/**
 * Readings closer together show the same window: several readers do not empty it for each other.
 */
const windowMillisMin = 5_000

/** Seconds that measurements came too late. */
export interface Lag {
  readonly mean: number
  readonly p99: number
  readonly max: number
}

const secondsLate = (nanos: number): number =>
  Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMillis / 1e3) : 0

/** Measures from now on. `read`: since the reading before, or since the one 5 s before. */
export const watchEventLoop = () => {
  const delays = monitorEventLoopDelay({ resolution: resolutionMillis })
  delays.enable()
  let latest: { readonly lag: Lag; readonly at: number } | undefined
  return {
    read: (): Lag => {
      const at = performance.now()
      if (latest !== undefined && at - latest.at < windowMillisMin) return latest.lag
      const lag = {
        mean: secondsLate(delays.mean),
        p99: secondsLate(delays.percentile(99)),
        max: secondsLate(delays.max)
      }
      delays.reset()
      latest = { lag, at }
      return lag
    },
    stop: (): void => void delays.disable()
  }
}

const kinds: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb"
}

export const garbageKinds: ReadonlyArray<string> = Object.values(kinds)

type GarbageEntry = PerformanceEntry & { readonly detail: { readonly kind: number } }

/** Calls back after each garbage collection from now on. */
export const watchGarbage = (collected: (kind: string, seconds: number) => void) => {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail, duration } = entry as GarbageEntry
      collected(kinds[detail.kind] ?? "minor", duration / 1000)
    }
  })
  observer.observe({ entryTypes: ["gc"] })
  return { stop: (): void => observer.disconnect() }
}
