// Prints the table of "What was tried" in README.md from the lines of results:
// `node test/torture/table.ts [FILE...]`. The line above it says how many cycles violated a
// promise.
import { type CycleResult, readResults, resultsFile } from "./results.ts"

interface Row {
  readonly name: string
  /** Cycles in which it was tried, with one server and with three. */
  readonly single: number
  readonly cluster: number
  readonly acknowledged: number
  readonly pushes: number
  readonly missed: number
  readonly duplicates: number
  readonly healSeconds: number
}

const sum = (results: ReadonlyArray<CycleResult>, of: (one: CycleResult) => number): number =>
  results.reduce((total, one) => total + of(one), 0)

const most = (results: ReadonlyArray<CycleResult>, of: (one: CycleResult) => number): number =>
  results.reduce((max, one) => Math.max(max, of(one)), 0)

const rowOf = (name: string, results: ReadonlyArray<CycleResult>): Row => ({
  name,
  single: results.filter(({ nodes }) => nodes === 1).length,
  cluster: results.filter(({ nodes }) => nodes === 3).length,
  acknowledged: sum(results, (one) => one.acknowledged),
  pushes: sum(results, (one) => one.pushes),
  missed: sum(results, (one) => one.missed),
  duplicates: most(results, (one) => one.duplicates),
  healSeconds: most(results, (one) => one.healSeconds)
})

const number = (value: number): string => Math.round(value).toLocaleString("en-US")

const lineOf = (row: Row): string =>
  `| ${[
    row.name,
    number(row.single),
    number(row.cluster),
    number(row.acknowledged),
    number(row.pushes),
    number(row.missed),
    number(row.duplicates),
    number(row.healSeconds)
  ].join(" | ")} |`

const heading = [
  "| Fault | Cycles, one server | Cycles, three | Broadcasts | Pushes | Missed " +
    "| Duplicates in a cycle, at most | Healed in, s, at most |",
  "| --- | --- | --- | --- | --- | --- | --- | --- |"
]

export const tableOf = (results: ReadonlyArray<CycleResult>): string => {
  const names = [...new Set(results.flatMap(({ faults }) => faults))].sort()
  const rows = names.map((name) =>
    rowOf(
      name,
      results.filter(({ faults }) => faults.includes(name))
    )
  )
  return [...heading, ...rows.map(lineOf), lineOf(rowOf("All cycles", results))].join("\n")
}

const spanOf = (values: ReadonlyArray<string>): string => {
  const [first, last] = [values[0]!, values.at(-1)!]
  return first === last ? first : `${first} to ${last}`
}

const summaryOf = (results: ReadonlyArray<CycleResult>): string => {
  const seeds = new Set(results.map(({ nodes, seed }) => `${seed}/${nodes}`)).size
  const ordered = [...results].sort((one, other) => (one.date < other.date ? -1 : 1))
  const failed = results.filter(({ checks }) => checks.failed > 0).length
  return (
    `${results.length} cycles by ${seeds} seeds, ` +
    `${spanOf(ordered.map(({ date }) => date.slice(0, 10)))}, ` +
    `commits ${spanOf(ordered.map(({ version }) => version))}: ${failed} with a violation.`
  )
}

if (import.meta.main) {
  const files = process.argv.length > 2 ? process.argv.slice(2) : [resultsFile]
  const results = files.flatMap(readResults)
  console.log(`${summaryOf(results)}\n\n${tableOf(results)}`)
}
