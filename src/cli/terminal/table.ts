// Tables for the terminal, and JSON for programs.
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { printable, printableJson } from "#telemetry/printable.ts"

export type Cell = string | number | undefined

/** A table with a heading. Numbers are aligned right, missing cells are a dash. */
export const table = (
  heading: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>
): string => {
  const lines = [heading, ...rows.map((row) => row.map((cell) => printable(String(cell ?? "-"))))]
  const widths = heading.map((_, column) =>
    lines.reduce((width, line) => Math.max(width, (line[column] ?? "").length), 0)
  )
  const right = heading.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof (row[column] ?? 0) === "number")
  )
  const pad = (cell: string, column: number) =>
    right[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
  return lines.map((line) => line.map(pad).join("  ").trimEnd()).join("\n")
}

interface Shown<R> {
  readonly heading: ReadonlyArray<string>
  readonly cellsOf: (row: R) => ReadonlyArray<Cell>
  /** The line in the place of a table without rows. */
  readonly none: string
}

/** A table of rows, or the line in its place. */
export const tableOr = <R>(rows: ReadonlyArray<R>, { cellsOf, heading, none }: Shown<R>): string =>
  rows.length === 0 ? none : table(heading, rows.map(cellsOf))

/** Prints rows: a line of JSON for each, or a table. */
export const printRows = <R>(json: boolean, rows: ReadonlyArray<R>, shown: Shown<R>) =>
  json
    ? Effect.forEach(rows, (row) => Console.log(printableJson(row)), { discard: true })
    : Console.log(tableOr(rows, shown))
