// The metrics of a process and its children as those of one process: counters and histograms are
// added up, gauges by their meaning. What a process that ended has counted stays, so that no
// counter goes back.
import * as Context from "effect/Context"
import type * as Metric from "effect/Metric"

/** The series of a metric in another process, as it was read there. */
export type Series = Metric.Metric.Snapshot

const emptyContext = Context.empty()

/** Gauges of which the sum is that of the whole. */
const summed = new Set([
  "bellcast_cache_bytes",
  "bellcast_push_service_window_pushes",
  "nodejs_external_memory_bytes",
  "nodejs_heap_size_total_bytes",
  "nodejs_heap_size_used_bytes",
  "process_resident_memory_bytes"
])
/** Gauges of which the highest is that of the whole. */
const highest = new Set([
  "bellcast_push_service_connectivity_state",
  "bellcast_push_service_credentials_state",
  "bellcast_push_service_guard_holding",
  "nodejs_eventloop_lag_max_seconds",
  "nodejs_eventloop_lag_mean_seconds",
  "nodejs_eventloop_lag_p99_seconds",
  // Each process has a limit of its own, and all have the same.
  "process_open_fds"
])

/** Of other gauges this process shows its own: they are about the whole service, or about it. */
const isCombined = ({ id, type }: Pick<Series, "id" | "type">): boolean =>
  type !== "Gauge" || summed.has(id) || highest.has(id)

const keyOf = ({ attributes = {}, id }: Pick<Series, "attributes" | "id">): string =>
  JSON.stringify([id, Object.entries(attributes).sort(([a], [b]) => (a < b ? -1 : 1))])

/** The series that two have together. Both are of one metric. */
const combined = (a: Series, b: Series): Series => {
  if (a.type === "Counter" && b.type === "Counter")
    return { ...a, state: { ...a.state, count: Number(a.state.count) + Number(b.state.count) } }
  if (a.type === "Histogram" && b.type === "Histogram") {
    const buckets = a.state.buckets.map(
      ([bound, count], i) => [bound, count + (b.state.buckets[i]?.[1] ?? 0)] as [number, number]
    )
    const { count, max, min, sum } = b.state
    return {
      ...a,
      state: {
        buckets,
        count: a.state.count + count,
        min: Math.min(a.state.min, min),
        max: Math.max(a.state.max, max),
        sum: a.state.sum + sum
      }
    }
  }
  if (a.type === "Summary" && b.type === "Summary") {
    const [count, sum] = [a.state.count + b.state.count, a.state.sum + b.state.sum]
    return { ...a, state: { ...a.state, count, sum } }
  }
  if (a.type === "Gauge" && b.type === "Gauge") {
    const values = [Number(a.state.value), Number(b.state.value)] as const
    const value = summed.has(a.id) ? values[0] + values[1] : Math.max(...values)
    return { ...a, state: { value } }
  }
  return a
}

/** Adds up the series of several processes, each series once. */
export const combinedSeries = (
  processes: ReadonlyArray<ReadonlyArray<Series>>
): ReadonlyArray<Series> => {
  const all = new Map<string, Series>()
  for (const series of processes.flat()) {
    const key = keyOf(series)
    const former = all.get(key)
    all.set(key, former === undefined ? series : combined(former, series))
  }
  return [...all.values()]
}

/** The counters stay of the series of a process that ended. */
export const countedBy = (series: ReadonlyArray<Series>): ReadonlyArray<Series> =>
  series.filter(({ type }) => type !== "Gauge")

/** The registry of this process with the series of others added to its own. */
export const registryWith = (
  registry: Metric.MetricRegistry,
  others: ReadonlyArray<ReadonlyArray<Series>>
): Metric.MetricRegistry => {
  if (others.length === 0) return registry
  const added = new Map(
    combinedSeries(others)
      .filter(isCombined)
      .map((series) => [keyOf(series), series] as const)
  )
  const whole: Metric.MetricRegistry = new Map()
  const shown = (key: string, series: Series, get: () => unknown) =>
    whole.set(key, {
      id: series.id,
      type: series.type,
      description: series.description,
      attributes: series.attributes,
      hooks: { get, update: () => {}, modify: () => {} }
    })
  for (const [key, metadata] of registry) {
    const { hooks, ...rest } = metadata
    const other = added.get(keyOf(metadata))
    added.delete(keyOf(metadata))
    if (other === undefined) whole.set(key, metadata)
    else
      shown(key, other, () => {
        const own = { ...rest, state: hooks.get(emptyContext) } as Series
        return combined(own, other).state
      })
  }
  for (const [key, series] of added) shown(key, series, () => series.state)
  return whole
}
