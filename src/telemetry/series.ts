// The metrics that this process updates, in series: one for each combination of labels.
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"

const context = Context.empty()

type Labels = Readonly<Record<string, string>>

/** The series of a metric. Each is made once, as there are few and updates are many. */
const seriesOf = <Input, State>(metric: Metric.Metric<Input, State>) => {
  const known = new Map<string, Metric.Metric<Input, State>>()
  /** Labels must always come in the same order. */
  return (labels: Labels): Metric.Metric<Input, State> => {
    const key = Object.values(labels).join(" ")
    let one = known.get(key)
    if (one === undefined) {
      one = Metric.withAttributes(metric, labels)
      known.set(key, one)
    }
    return one
  }
}

/** A function that updates the series of a metric for some labels. */
const series = <Input, State>(metric: Metric.Metric<Input, State>) => {
  const of = seriesOf(metric)
  return (labels: Labels, input: Input): void => of(labels).updateUnsafe(input, context)
}

/**
 * The values of a label: all of them; `given` where only the settings name them (`fromZero`); or
 * `open` where nobody can list them.
 */
type Values = ReadonlyArray<string> | "given" | "open"

type ValueOf<V extends Values> = V extends ReadonlyArray<infer Value> ? Value : string

type LabelsOf<L extends Readonly<Record<string, Values>>> = {
  readonly [Name in keyof L]: ValueOf<L[Name]>
}

/** Every combination of labels. */
const combinations = (
  labels: ReadonlyArray<readonly [string, ReadonlyArray<string>]>
): ReadonlyArray<Labels> =>
  labels.reduce<ReadonlyArray<Labels>>(
    (before, [name, values]) =>
      before.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}]
  )

/**
 * A counter, as a function that adds to a series. Prometheus sees no increase in a series that
 * begins at 1, so an alert would miss the first event of a process: every series begins at 0, when
 * the counter is defined or, with `given` labels, when `fromZero` gives their values. A counter
 * with an `open` label cannot, and needs another one beside it for alerts.
 */
export const counter = <const L extends Readonly<Record<string, Values>>>(
  name: string,
  description: string,
  labels: L
) => {
  const of = seriesOf(Metric.counter(name, { description, incremental: true }))
  const values: ReadonlyArray<readonly [string, Values]> = Object.entries(labels)
  const begin = (given: Readonly<Record<string, ReadonlyArray<string>>>): void => {
    const listed = values.flatMap(([label, some]) => {
      const list = some === "given" ? given[label] : some
      return typeof list === "object" ? [[label, list] as const] : []
    })
    if (listed.length < values.length) return
    for (const each of combinations(listed)) of(each).valueUnsafe(context)
  }
  begin({})
  return Object.assign(
    (series: LabelsOf<L>, input: number): void => of(series).updateUnsafe(input, context),
    { fromZero: begin }
  )
}

/**
 * A counter of NATS that this process shows, as a function that adds to a series. Begins with the
 * first reading: a 0 before that would make an increase of the whole total.
 */
export const readCounter = (name: string, description: string) =>
  series(Metric.counter(name, { description, incremental: true }))

/** A gauge, as a function that sets a series. */
export const gauge = (name: string, description: string) =>
  series(Metric.gauge(name, { description }))

/** A histogram, as a function that adds a value to a series. */
export const histogram = (name: string, description: string, boundaries: ReadonlyArray<number>) =>
  series(Metric.histogram(name, { description, boundaries }))
