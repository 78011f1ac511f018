// The output of verbs: tables and JSON to standard output; notes, failures and errors of the
// command line to standard error.
import { fstatSync } from "node:fs"
import * as Console from "effect/Console"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { printable, printableJson, withoutSecrets } from "#telemetry/redaction.ts"

/** Prints rows: a line of JSON for each, or a table. */
export const printRows = <R>(json: boolean, rows: ReadonlyArray<R>, shown: Shown<R>) =>
  json
    ? Effect.forEach(rows, (row) => Console.log(printableJson(row)), { discard: true })
    : Console.log(tableOr(rows, shown))

/**
 * Prints, after everything else, that a list ends at its limit: with JSON as a line with `more`.
 * `before`: the time by which `--before` goes on.
 */
export const printMore = (json: boolean, rows: number, before?: string) => {
  const further = before === undefined ? "" : `--before ${before}, or `
  return Console.log(
    json
      ? JSON.stringify({ more: true, ...(before !== undefined && { before }) })
      : `${rows} or more: ${further}a larger --limit shows others`
  )
}

/**
 * The time by which `--before` goes on behind a broadcast that was accepted at `last`. Shows that
 * one again: others may have been accepted in the same millisecond. Undefined: it was accepted
 * before `since`, and is listed for its later start.
 */
export const nextBefore = (last: number, since: number): string | undefined =>
  last < since ? undefined : new Date(last + 1).toISOString()

/** A table of rows, or the line in its place. */
export const tableOr = <R>(rows: ReadonlyArray<R>, { cellsOf, heading, none }: Shown<R>): string =>
  rows.length === 0 ? none : table(heading, rows.map(cellsOf))

export interface Shown<R> {
  readonly heading: ReadonlyArray<string>
  readonly cellsOf: (row: R) => ReadonlyArray<Cell>
  /** The line in the place of a table without rows. */
  readonly none: string
}

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

/** Milliseconds since the epoch as a time in UTC; undefined: a missing cell. */
export const isoOf = (millis: number | undefined): string | undefined =>
  millis === undefined ? undefined : new Date(millis).toISOString()

/** A number with its noun. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count} ${count === 1 ? noun : plural}`

/** A word of a command that is printed for a shell. */
export const shellWord = (text: string): string =>
  /^[\w.:@/+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Prints a message to stderr, so that stdout has only the verb's output. Escapes control
 * characters: the text may come from NATS or another server.
 */
export const note = (text: string) =>
  Console.error(`bellcast: ${text.split("\n").map(printable).join("\n")}`)

/** Warns where standard output is a file that other users may read. `secrets`: what is in it. */
export const noteReadByOthers = (secrets: string, remedy = "chmod 600 it") =>
  Effect.suspend(() => {
    const output = fstatSync(1)
    return output.isFile() && (output.mode & 0o077) !== 0
      ? note(`others may read the file that ${secrets} go to: ${remedy}`)
      : Effect.void
  })

/** A verb cannot go on. The message is printed. */
export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", {
  message: Schema.String,
  /** Absent: 1. */
  exitCode: Schema.optionalKey(Schema.Int)
}) {}

export const failed = (message: string) => new VerbFailed({ message })

/** A failure with the message of another error. */
export const failedBy = ({ message }: { readonly message: string }) => failed(message)

/** Runs a verb, or a part of it, and prints its failure. */
export const noted = <A, E extends { readonly message: string }, R>(verb: Effect.Effect<A, E, R>) =>
  Effect.tapError(verb, ({ message }) => note(message))

/** The kind and the place of a defect: its message may hold what is stored of a person. */
export const defectText = (defect: unknown): string => {
  const { name, stack = "" } = defect instanceof Error ? defect : new Error("not an error")
  const [place = ""] = stack.split("\n").filter((line) => /^\s+at /.test(line))
  return `this is a defect, please report it: ${name}${place.replace(/^\s+/, " ")}`
}

/** Messages quote the command line, where an address of NATS may hold a password. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? note(
          [
            event.errors.map(({ message }) => withoutSecrets(message)).join("; "),
            `usage: ${event.helpDoc.usage} (--help tells more)`
          ].join("\n")
        )
      : CliOutput.defaultPresenter.present(event)
}

/** The presenter of errors, and the built-in flags that have a use here. */
export const usageLayer = Layer.merge(
  CliOutput.layerPresenter(presenter),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version] })
)
