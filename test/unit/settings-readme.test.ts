// The tables of settings in src/settings/README.md agree with the code, and no document names a
// variable that the service would warn of.
import { ConfigProvider, Effect, Option, type Result } from "effect"
import { assert, describe, it } from "vitest"
import { roles, settings } from "#config"
import { gatewaySettings } from "#gateway/settings.ts"
import { kinds } from "#identity/kinds.ts"
import {
  identitySettings,
  type PolicyKind,
  policyKinds,
  settingPrefix
} from "#identity/settings.ts"
import { namesOf, type Table, unknownSettings } from "#settings/every-setting.ts"
import { documentPaths, spansOf, textOf } from "../support/documents.ts"

type Row = ReadonlyArray<string>

const cellsOf = (row: string): Row =>
  row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim())

const rows = textOf("src/settings/README.md")
  .split(/\n\n/)
  .filter((part) => part.startsWith("| Setting | Default |"))
  .flatMap((table) => table.trimEnd().split("\n").slice(2).map(cellsOf))

/** How the tables write a default. */
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

/**
 * The settings of a row with their defaults. A cell has one default for each setting, or one for
 * all; text behind a colon or semicolon is free.
 */
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
const defaults = [
  ...defaultsOf(settings),
  ...defaultsOf(gatewaySettings),
  ...defaultsOf(identitySettings),
  ...elsewhere
]

describe("the tables of settings", () => {
  it("have every setting with its default, and no other", () => {
    const written = rows.flatMap(settingsOf)
    assert.deepEqual(Object.fromEntries(written), Object.fromEntries(defaults))
    assert.strictEqual(written.length, defaults.length)
  })
})

const settingsOfKind = (kind: PolicyKind) => namesOf(kinds[kind].settings(settingPrefix(kind)))

describe("the documents", () => {
  it("explain every setting of every policy", () => {
    const text = textOf("src/identity/README.md")
    const missing = policyKinds
      .flatMap(settingsOfKind)
      .filter((name) => !new RegExp(`^\\|.*\`${name}\`.*\\|.*\\|$`, "m").test(text))
    assert.deepEqual(missing, [])
  })

  it("name no variable that a start warns of, nor do the files that operators copy", () => {
    const streams = ["BELLCAST_LOG", "BELLCAST_PROBE", "BELLCAST_WORK"]
    const files = ["streams/accounts.conf", "compose.yaml", "Makefile", "src/Dockerfile"]
    const named = [...documentPaths, ...files].flatMap((path) =>
      [...textOf(path).matchAll(/BELLCAST_[A-Z0-9_]*[A-Z0-9]\b/g)].map(([name]) => name)
    )
    const found = new Map(
      named
        .filter((name) => !streams.includes(name))
        .map((name) => [name, { value: "x", place: name, inFile: false }])
    )
    const known = [...defaults.map(([name]) => name), ...policyKinds.flatMap(settingsOfKind)]
    const source = { found, faults: [], isDevelopment: false }
    assert.deepEqual(unknownSettings(source, known, () => undefined).warnings, [])
    assert.includeMembers([...found.keys()], ["BELLCAST_METRICS_ADDRESS", "BELLCAST_CONFIG"])
  })
})
