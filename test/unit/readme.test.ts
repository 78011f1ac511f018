// The README's tables agree with the code: every operation, every setting with its default, every metric, and nothing else.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { ConfigProvider, Effect, Option, type Result } from "effect"
import { assert, describe, it } from "vitest"
import { roles, settings } from "#config"
import { endpoints } from "#gateway/endpoints.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { namesOf, type Table } from "#settings/every-setting.ts"

const root = new URL("../../", import.meta.url).pathname
const readme = readFileSync(join(root, "README.md"), "utf8")

/** The rows of every table with this first heading, cell by cell. */
const rowsOf = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const tables = readme.split(/\n\n/).filter((part) => part.startsWith(`| ${heading} |`))
  assert.isNotEmpty(tables)
  return tables.flatMap((table) =>
    table
      .trimEnd()
      .split("\n")
      .slice(2)
      .map((row) =>
        row
          .split("|")
          .slice(1, -1)
          .map((cell) => cell.trim())
      )
  )
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

describe("the README", () => {
  it("tells every operation of the API, and no other", () => {
    const offered = endpoints.flatMap(({ operations, path }) =>
      Object.keys(operations).map((method) => `${method} ${path.replace(/:\w+/g, "{}")}`)
    )
    assert.sameMembers(
      rowsOf("Request").flatMap(([request]) => operationsOf(request!)),
      offered
    )
  })

  const textOf = (value: unknown): string => {
    if (Option.isOption(value)) return Option.isNone(value) ? "unset" : textOf(value.value)
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
      return names.map((name, i) => [name, textOf(values[i])] as const)
    })

  /** A cell names one default for each setting, or one for all; behind a colon or semicolon it may say more. */
  const told = rowsOf("Setting").flatMap(([setting, text]) => {
    const names = spansOf(setting!)
    const values = text!
      .replace(/[:;] .*$/, "")
      .replaceAll("`", "")
      .split(", ")
    return names.map(
      (name, i) => [name, values.length === 1 ? values[0]! : (values[i] ?? "nothing")] as const
    )
  })

  // Asked for by the search for a nats-server, not by a stage.
  const elsewhere = [["BELLCAST_NATS_SERVER", "unset"] as const]
  const defaults = [...defaultsOf(settings), ...defaultsOf(gatewaySettings), ...elsewhere]

  it("tells every setting with its default, and no other", () => {
    assert.deepEqual(Object.fromEntries(told), Object.fromEntries(defaults))
    assert.strictEqual(told.length, defaults.length)
  })

  it("names no setting that there is not", () => {
    const known = [...defaults.map(([name]) => name), "BELLCAST_CONFIG", "BELLCAST_TEST_NATS"]
    for (const [name] of readme.matchAll(/BELLCAST_[A-Z0-9_]*[A-Z0-9]/g))
      if (name !== "BELLCAST_LOG") assert.include(known, name)
  })

  it("tells every metric, and no other", () => {
    const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
      (file) => file.endsWith(".ts")
    )
    const counted = sources.flatMap((file) =>
      [...readFileSync(join(root, "src", file), "utf8").matchAll(/Metric\.\w+\(\s*"(\w+)"/g)].map(
        ([, name]) => name!
      )
    )
    assert.isNotEmpty(counted)
    assert.sameMembers(
      rowsOf("Metric").flatMap(([name]) => spansOf(name!)),
      counted
    )
  })
})
