// Metrics of this process as a program: CPU, memory, descriptors, event loop, garbage. Their names
// are those of Prometheus clients, so that existing dashboards work. Not part of the registry of
// the other metrics, as the API shows those to anybody.
import { readdir, readFile } from "node:fs/promises"
import packageJson from "../../package.json" with { type: "json" }
import { watchEventLoop, watchGarbage } from "./event-loop.ts"

type Type = "counter" | "gauge" | "summary"

export const described = {
  bellcast_build_info: ["gauge", "1, with the version and the roles of this process"],
  process_cpu_user_seconds_total: ["counter", "CPU time in user mode"],
  process_cpu_system_seconds_total: ["counter", "CPU time in the kernel"],
  process_cpu_seconds_total: ["counter", "CPU time in user mode and in the kernel"],
  process_start_time_seconds: ["gauge", "Start of the process, in seconds since 1970"],
  process_resident_memory_bytes: ["gauge", "Physical memory of the process"],
  process_open_fds: ["gauge", "Open file descriptors, sockets included"],
  process_max_fds: ["gauge", "Limit of open file descriptors"],
  nodejs_version_info: ["gauge", "1, with the version of Node.js"],
  nodejs_heap_size_total_bytes: ["gauge", "Heap that V8 has reserved"],
  nodejs_heap_size_used_bytes: ["gauge", "Heap that V8 uses, garbage included"],
  nodejs_external_memory_bytes: ["gauge", "Memory outside the heap that objects of V8 hold"],
  nodejs_eventloop_lag_mean_seconds: ["gauge", "How late timers were since the last scrape: mean"],
  nodejs_eventloop_lag_p99_seconds: ["gauge", "How late timers were since the last scrape: p99"],
  nodejs_eventloop_lag_max_seconds: ["gauge", "How late timers were since the last scrape: most"],
  nodejs_eventloop_time_seconds_total: ["counter", "Time of the event loop, active or idle"],
  nodejs_gc_duration_seconds: ["summary", "Garbage collections and their time, by kind"]
} as const satisfies Readonly<Record<string, readonly [Type, string]>>

type Name = keyof typeof described
/** What follows the name on a line (a suffix, labels), and the value. */
type Sample = readonly [rest: string, value: number]
type Samples = Partial<Record<Name, ReadonlyArray<Sample>>>

const only = (value: number): ReadonlyArray<Sample> => [["", value]]

/** Undefined where the system has no such file: the metric is then left out. */
const descriptors = async () => {
  const open = await readdir("/proc/self/fd").then(
    (names) => names.length,
    () => undefined
  )
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "")
  const [, max] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  return {
    ...(open === undefined ? {} : { process_open_fds: only(open) }),
    ...(max === undefined ? {} : { process_max_fds: only(Number(max)) })
  }
}

const usage = (): Samples => {
  const { system, user } = process.cpuUsage()
  const { external, heapTotal, heapUsed, rss } = process.memoryUsage()
  const { active, idle } = performance.eventLoopUtilization()
  return {
    process_cpu_user_seconds_total: only(user / 1e6),
    process_cpu_system_seconds_total: only(system / 1e6),
    process_cpu_seconds_total: only((user + system) / 1e6),
    process_start_time_seconds: only(performance.timeOrigin / 1000),
    process_resident_memory_bytes: only(rss),
    nodejs_heap_size_total_bytes: only(heapTotal),
    nodejs_heap_size_used_bytes: only(heapUsed),
    nodejs_external_memory_bytes: only(external),
    nodejs_eventloop_time_seconds_total: [
      ['{state="active"}', active / 1000],
      ['{state="idle"}', idle / 1000]
    ]
  }
}

const textOf = (samples: Samples): string =>
  (Object.keys(described) as ReadonlyArray<Name>)
    .flatMap((name) => {
      const [type, help] = described[name]
      const lines = (samples[name] ?? []).map(([rest, value]) => `${name}${rest} ${value}\n`)
      return lines.length === 0
        ? []
        : [`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`, ...lines]
    })
    .join("")

/** Measures from now on, until `stop`. `text` is in the format of Prometheus. */
export const watchProcess = (roles: ReadonlyArray<string>) => {
  const eventLoop = watchEventLoop()
  const garbage = watchGarbage()
  const info = `{version="${packageJson.version}",roles="${roles.join(",")}"}`
  const collections = () =>
    [...garbage.byKind].flatMap(
      ([kind, { count, seconds }]): ReadonlyArray<Sample> => [
        [`_sum{kind="${kind}"}`, seconds],
        [`_count{kind="${kind}"}`, count]
      ]
    )
  return {
    text: async (): Promise<string> => {
      const lag = eventLoop.read()
      return textOf({
        ...usage(),
        ...(await descriptors()),
        bellcast_build_info: [[info, 1]],
        nodejs_version_info: [[`{version="${process.version}"}`, 1]],
        nodejs_eventloop_lag_mean_seconds: only(lag.mean),
        nodejs_eventloop_lag_p99_seconds: only(lag.p99),
        nodejs_eventloop_lag_max_seconds: only(lag.max),
        nodejs_gc_duration_seconds: collections()
      })
    },
    stop: (): void => {
      eventLoop.stop()
      garbage.stop()
    }
  }
}
