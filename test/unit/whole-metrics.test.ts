// Metrics of several processes as those of one.
import { Context, Metric } from "effect"
import { assert, describe, it } from "vitest"
import { combinedSeries, countedBy, registryWith, type Series } from "#telemetry/whole-metrics.ts"

/** The metrics of a process, as its registry has them. */
const processWith = (
  pushes: number,
  bytes: number,
  lag: number,
  seconds: ReadonlyArray<number>
) => {
  const registry: Metric.MetricRegistry = new Map()
  const context = Context.make(Metric.MetricRegistry, registry)
  const host = { attributes: { host: "push.example.org" } }
  Metric.counter("bellcast_pushes_total", { ...host, incremental: true }).updateUnsafe(
    pushes,
    context
  )
  Metric.gauge("process_resident_memory_bytes").updateUnsafe(bytes, context)
  Metric.gauge("nodejs_eventloop_lag_max_seconds").updateUnsafe(lag, context)
  Metric.gauge("process_open_fds").updateUnsafe(bytes + 20, context)
  Metric.gauge("process_start_time_seconds").updateUnsafe(pushes, context)
  const latency = Metric.histogram("bellcast_push_latency_seconds", { boundaries: [1, 10] })
  for (const each of seconds) latency.updateUnsafe(each, context)
  return { registry, series: Metric.snapshotUnsafe(context) }
}

const stateOf = (all: ReadonlyArray<Series>, id: string) =>
  all.find((series) => series.id === id)?.state as unknown as Readonly<Record<string, unknown>>

describe("the metrics of a process and its children", () => {
  const own = processWith(5, 100, 0.1, [0.5])
  const first = processWith(7, 50, 0.4, [0.5, 20])
  const second = processWith(11, 30, 0.2, [5])

  it("are added up where they count, and else are the worst or its own", () => {
    const registry = registryWith(own.registry, [first.series, second.series])
    const whole = Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry))
    assert.lengthOf(whole, own.series.length)
    assert.equal(stateOf(whole, "bellcast_pushes_total")["count"], 23)
    assert.equal(stateOf(whole, "process_resident_memory_bytes")["value"], 180)
    assert.equal(stateOf(whole, "nodejs_eventloop_lag_max_seconds")["value"], 0.4)
    assert.equal(stateOf(whole, "process_open_fds")["value"], 120)
    assert.equal(stateOf(whole, "process_start_time_seconds")["value"], 5)
    const { buckets, count, sum } = stateOf(whole, "bellcast_push_latency_seconds")
    assert.deepEqual([count, sum], [4, 26])
    assert.includeDeepMembers(buckets as Array<unknown>, [
      [1, 2],
      [10, 3]
    ])
  })

  it("do not go back when a child ends", () => {
    const ended = combinedSeries([[], countedBy(first.series)])
    const registry = registryWith(own.registry, [ended, second.series])
    const whole = Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry))
    assert.equal(stateOf(whole, "bellcast_pushes_total")["count"], 23)
    assert.equal(stateOf(whole, "process_resident_memory_bytes")["value"], 130)
  })

  it("have the series that only a child has", () => {
    const registry = registryWith(new Map(), [first.series])
    const whole = Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry))
    assert.equal(stateOf(whole, "bellcast_pushes_total")["count"], 7)
    assert.isUndefined(stateOf(whole, "process_start_time_seconds"))
  })
})
