// The tables of the documents agree with the code: every operation and every setting, and no other.
// A document that has such a table has all of it.
import { ConfigProvider, Effect, Option, type Result } from "effect"
import { assert, describe, it } from "vitest"
import { roles, settings } from "#config"
import { endpoints } from "#gateway/endpoints.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { namesOf, type Table } from "#settings/every-setting.ts"
import { documentPaths, textOf } from "../support/documents.ts"

type Row = ReadonlyArray<string>

const cellsOf = (row: string): Row =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

/** The rows of all tables of a document with this first heading; undefined: it has none. */
const rowsIn = (text: string, heading: string): ReadonlyArray<Row> | undefined => {
  const tables = text.split(/\n\n/).filter((part) => part.startsWith(`| ${heading} |`))
  if (tables.length === 0) return undefined
  return tables.flatMap((table) => table.trimEnd().split("\n").slice(2).map(cellsOf))
}

/** Checks the tables with this first heading, document by document. At least one has some. */
const eachTable = (heading: string, check: (rows: ReadonlyArray<Row>, path: string) => void) => {
  const found = documentPaths.flatMap((path) => {
    const rows = rowsIn(textOf(path), heading)
    return rows === undefined ? [] : [[rows, path] as const]
  })
  assert.isNotEmpty(found, heading)
  for (const [rows, path] of found) check(rows, path)
}

const spansOf = (cell: string): ReadonlyArray<string> =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, span]) => span!)

/** `PUT`, `DELETE /x` are two operations on /x; `GET /x`, `/y` are one on each. */
const operationsOf = (cell: string): ReadonlyArray<string> => {
  const operations: Array<string> = []
  let waiting: Array<string> = []
  let method = ""
  for (const span of spansOf(cell)) {
    const [, verb = "", path = ""] = /^(GET|POST|PUT|DELETE)?(?: ?(\/\S*))?$/.exec(span) ?? []
    if (verb === "" && path === "") continue
    if (verb !== "") method = verb
    if (path === "") waiting.push(verb)
    else {
      operations.push(
        ...[...waiting, method].map((each) => `${each} ${path.replace(/\{\w+\}/g, "{}")}`)
      )
      waiting = []
    }
  }
  return operations
}

/** How a document writes a default. */
const writtenDefault = (value: unknown): string => {
  if (Option.isOption(value)) return Option.isNone(value) ? "unset" : writtenDefault(value.value)
  if (Array.isArray(value))
    return roles.every((role) => value.includes(role)) ? "all" : value.join(", ") || "none"
  return value === "" ? "unset" : String(value)
}

const defaultsOf = (table: Table): ReadonlyArray<readonly [string, string]> =>
  Object.entries(table).flatMap(([key, config]) => {
    const { success } = Effect.runSync(
      Effect.result(config.parse(ConfigProvider.fromUnknown({})))
    ) as Result.Success<unknown, never>
    const names = namesOf({ [key]: config })
    const values =
      names.length === 1 ? [success] : Object.values(success as Readonly<Record<string, unknown>>)
    return names.map((name, i) => [name, writtenDefault(values[i])] as const)
  })

/** A cell has one default for each setting, or one for all; text behind a colon or semicolon is free. */
const settingsOf = ([setting, text]: Row): ReadonlyArray<readonly [string, string]> => {
  const values = text!
    .replace(/[:;] .*$/, "")
    .replaceAll("`", "")
    .split(", ")
  return spansOf(setting!).map(
    (name, i) => [name, values.length === 1 ? values[0]! : (values[i] ?? "nothing")] as const
  )
}

// Read by the search for a nats-server, not by a stage.
const elsewhere = [["BELLCAST_NATS_SERVER", "unset"] as const]
const defaults = [...defaultsOf(settings), ...defaultsOf(gatewaySettings), ...elsewhere]

describe("the documents", () => {
  it("tell every operation of the API, and no other", () => {
    const offered = endpoints.flatMap(({ operations, path }) =>
      Object.keys(operations).map((method) => `${method} ${path.replace(/:\w+/g, "{}")}`)
    )
    eachTable("Request", (rows, path) => {
      const told = rows.flatMap(([request]) => operationsOf(request!))
      assert.sameMembers(told, offered, path)
    })
  })

  it("tell every setting with its default, and no other", () => {
    eachTable("Setting", (rows, path) => {
      const told = rows.flatMap(settingsOf)
      assert.deepEqual(Object.fromEntries(told), Object.fromEntries(defaults), path)
      assert.strictEqual(told.length, defaults.length, path)
    })
  })

  it("name no setting that there is not", () => {
    const known = new Set([
      ...defaults.map(([name]) => name),
      "BELLCAST_CONFIG",
      "BELLCAST_TEST_NATS",
      // Names of the streams.
      "BELLCAST_LOG",
      "BELLCAST_WORK"
    ])
    for (const path of documentPaths.filter((each) => each !== "CHANGELOG.md"))
      for (const [name] of textOf(path).matchAll(/BELLCAST_[A-Z0-9_]*[A-Z0-9]\b/g))
        assert.isTrue(known.has(name), `${path}: ${name}`)
  })
})
