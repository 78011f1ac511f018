// The metrics that this process updates, in series: one for each combination of labels.
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"

const context = Context.empty()

/**
 * A function that updates the series of a metric for some labels. Each series is made once, as
 * there are few and updates are many. Labels must always come in the same order.
 */
const series = <Input, State>(metric: Metric.Metric<Input, State>) => {
  const known = new Map<string, Metric.Metric<Input, State>>()
  return (labels: Readonly<Record<string, string>>, input: Input): void => {
    const key = Object.values(labels).join(" ")
    let one = known.get(key)
    if (one === undefined) {
      one = Metric.withAttributes(metric, labels)
      known.set(key, one)
    }
    one.updateUnsafe(input, context)
  }
}

/** A counter, as a function that adds to a series. */
export const counter = (name: string, description: string) =>
  series(Metric.counter(name, { description, incremental: true }))

/** A gauge, as a function that sets a series. */
export const gauge = (name: string, description: string) =>
  series(Metric.gauge(name, { description }))

/** A histogram, as a function that adds a value to a series. */
export const histogram = (name: string, description: string, boundaries: ReadonlyArray<number>) =>
  series(Metric.histogram(name, { description, boundaries }))
