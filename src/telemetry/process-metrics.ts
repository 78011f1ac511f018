// Metrics of this process as a program: CPU, memory, descriptors, how late its event loop is, and
// how often and how long V8 collects garbage. Their names are those of Prometheus clients, so that
// existing dashboards work.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { totalmem } from "node:os"
import {
  constants,
  monitorEventLoopDelay,
  type PerformanceEntry,
  PerformanceObserver
} from "node:perf_hooks"
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import packageJson from "../../package.json" with { type: "json" }

/** Whether a metric is one of these: the API shows them to nobody. */
export const isOfProcess = (name: string): boolean =>
  /^(process|nodejs|bellcast_cache|bellcast_memory)_|^bellcast_build_info$/.test(name)

const context = Context.empty()

/** A series whose state is read whenever the metrics are. */
const series = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
  Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} })

type Labels = Readonly<Record<string, string>>

/** A gauge that is read whenever the metrics are. */
export const gauge = (
  name: string,
  description: string,
  read: () => number,
  attributes: Labels = {}
) => series(Metric.gauge(name, { description, attributes }), () => ({ value: read() }))

const counter = (name: string, description: string, read: () => number, attributes: Labels = {}) =>
  series(Metric.counter(name, { description, attributes }), () => ({
    count: read(),
    incremental: true
  }))

const kinds: Readonly<Record<number, string>> = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: "minor",
  [constants.NODE_PERFORMANCE_GC_MAJOR]: "major",
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: "incremental",
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: "weakcb"
}

const garbageKinds: ReadonlyArray<string> = Object.values(kinds)

const garbage = Metric.summary("nodejs_gc_duration_seconds", {
  description: "Garbage collections and their time, by kind",
  maxAge: 0,
  maxSize: 0,
  quantiles: []
})

const garbageByKind = new Map(
  garbageKinds.map((kind) => [kind, Metric.withAttributes(garbage, { kind })])
)

const start = performance.timeOrigin / 1e3

/** Adds the metrics to the registry, and measures, until `stop`. */
export const watchProcess = (roles: ReadonlyArray<string>) => {
  const lag = watchEventLoop()
  // Shown from the start, so that the first collection is an increase.
  for (const metric of garbageByKind.values()) metric.valueUnsafe(context)
  const collections = watchGarbage((kind, seconds) =>
    garbageByKind.get(kind)?.updateUnsafe(seconds, context)
  )
  const shown = [...identity(roles), ...resources(), ...descriptors(), ...eventLoop(lag.read)]
  return {
    stop: (): void => {
      lag.stop()
      collections.stop()
      for (const { remove } of shown) remove()
    }
  }
}

const identity = (roles: ReadonlyArray<string>) => [
  info("bellcast_build_info", "the version and the roles of this process", {
    version: packageJson.version,
    roles: roles.join(",")
  }),
  info("nodejs_version_info", "the version of Node.js", { version: process.version }),
  gauge("process_start_time_seconds", "Start of the process, in seconds since 1970", () => start)
]

const info = (name: string, description: string, labels: Labels) =>
  gauge(name, `1, with ${description}`, () => 1, labels)

const cpu = (name: string, description: string, ...modes: Array<keyof NodeJS.CpuUsage>) =>
  counter(name, description, () => {
    const usage = process.cpuUsage()
    return modes.reduce((sum, mode) => sum + usage[mode], 0) / 1e6
  })

const memory = (name: string, description: string, part: keyof NodeJS.MemoryUsage) =>
  gauge(name, description, () => process.memoryUsage()[part])

/** The limit of the cgroup, in which nothing else may run, or the memory of the machine. */
export const memoryLimit = (): number =>
  Math.min(totalmem(), process.constrainedMemory() || Infinity)

const resources = () => [
  cpu("process_cpu_user_seconds_total", "CPU time in user mode", "user"),
  cpu("process_cpu_system_seconds_total", "CPU time in the kernel", "system"),
  cpu("process_cpu_seconds_total", "CPU time in user mode and in the kernel", "user", "system"),
  memory("process_resident_memory_bytes", "Physical memory of the process", "rss"),
  gauge("bellcast_memory_limit_bytes", "Memory of the container or machine", memoryLimit),
  memory("nodejs_heap_size_total_bytes", "Heap that V8 has reserved", "heapTotal"),
  memory("nodejs_heap_size_used_bytes", "Heap that V8 uses, garbage included", "heapUsed"),
  memory("nodejs_external_memory_bytes", "Memory outside the heap that objects hold", "external")
]

/** On Linux only. */
const descriptors = () => {
  if (!existsSync("/proc/self/limits")) return []
  const max = Number(
    /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1]
  )
  const open = () => {
    try {
      return readdirSync("/proc/self/fd").length
    } catch {
      // No descriptor is left to read the folder with.
      return max
    }
  }
  return [
    gauge("process_open_fds", "Open file descriptors, sockets included", open),
    gauge("process_max_fds", "Limit of open file descriptors", () => max)
  ]
}

const late = "How late timers were since the last scrape"

const loopTime = (state: "active" | "idle") =>
  counter(
    "nodejs_eventloop_time_seconds_total",
    "Time of the event loop, active or idle",
    () => performance.eventLoopUtilization()[state] / 1e3,
    { state }
  )

const eventLoop = (read: () => Lag) => [
  gauge("nodejs_eventloop_lag_mean_seconds", `${late}: mean`, () => read().mean),
  gauge("nodejs_eventloop_lag_p99_seconds", `${late}: p99`, () => read().p99),
  gauge("nodejs_eventloop_lag_max_seconds", `${late}: most`, () => read().max),
  loopTime("active"),
  loopTime("idle")
]

/** Seconds that measurements came too late. */
interface Lag {
  readonly mean: number
  readonly p99: number
  readonly max: number
}

/** Between two measurements. Each wakes the process: ten a second would cost 0.05 % of a core. */
const resolutionMillis = 250

/**
 * Readings closer together show the same window: several readers do not empty it for each other.
 */
const windowMillisMin = 5_000

/** Measures from now on. `read`: since the reading before, or since the one 5 s before. */
const watchEventLoop = () => {
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

const secondsLate = (nanos: number): number =>
  Number.isFinite(nanos) ? Math.max(0, nanos / 1e9 - resolutionMillis / 1e3) : 0

type GarbageEntry = PerformanceEntry & { readonly detail: { readonly kind: number } }

/** Calls back after each garbage collection from now on. */
const watchGarbage = (collected: (kind: string, seconds: number) => void) => {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail, duration } = entry as GarbageEntry
      collected(kinds[detail.kind] ?? "minor", duration / 1000)
    }
  })
  observer.observe({ entryTypes: ["gc"] })
  return { stop: (): void => observer.disconnect() }
}
