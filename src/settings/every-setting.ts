// Reads a whole table of settings, so that a failed start names every wrong setting at once.
import type * as Config from "effect/Config"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { Source, type SourceShape } from "./source.ts"

/** The service cannot start with these settings. The message has one line for each wrong one. */
export class SettingsError extends Schema.TaggedError<SettingsError>()("SettingsError", {
  message: Schema.String
}) {}

export type Table = Readonly<Record<string, Config.Config<unknown>>>
export type Values<C> = { readonly [K in keyof C]: C[K] extends Config.Config<infer A> ? A : never }

export const settingsFault = (faults: ReadonlyArray<string>): SettingsError =>
  new SettingsError({ message: `Settings that cannot be used:\n${faults.join("\n")}` })

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * One line for each fault of a setting, with the place where it was set. Never quotes the value,
 * which may be a secret.
 */
const sentences = (
  { cause }: Config.ConfigError,
  { found }: SourceShape
): ReadonlyArray<string> => {
  if (cause._tag === "SourceError") return [cause.message]
  const issues = issuesOf(cause.issue).issues.map(({ message, path = [] }) => {
    const [name = "", ...inside] = path.map((part) =>
      String(typeof part === "object" ? part.key : part)
    )
    return { name, inside, message }
  })
  return issues
    .filter(
      ({ inside, name }) =>
        inside.length > 0 || !issues.some((other) => other.name === name && other.inside.length > 0)
    )
    .map(({ inside, message, name }) => {
      const item = inside.length === 0 ? "" : ` (item ${Number(inside[0]) + 1})`
      const at = found.get(name)
      return at === undefined ? `${name}: Must be set` : `${at.place}: ${message}${item}`
    })
}

/** The usable values, and one line about every other setting of the table. */
export const readEvery = Effect.fnUntraced(function* <C extends Table>(table: C) {
  const source = yield* Source
  const values: Record<string, unknown> = {}
  const faults: Array<string> = []
  for (const [key, config] of Object.entries(table)) {
    const result = yield* Effect.result(config)
    if (result._tag === "Success") values[key] = result.success
    else faults.push(...sentences(result.failure, source))
  }
  return { values: values as Partial<Values<C>>, faults }
})

/** The values of a table. Fails with every fault at once. */
export const everySetting = Effect.fnUntraced(function* <C extends Table>(table: C) {
  const { faults, values } = yield* readEvery(table)
  if (faults.length > 0) return yield* settingsFault(faults)
  return values as Values<C>
})

/** The names of a table's settings: those it reads from an empty provider. */
export const namesOf = (table: Table): ReadonlyArray<string> => {
  const names = new Set<string>()
  const nothing = ConfigProvider.make((path) => {
    names.add(String(path[0]))
    return Effect.void as Effect.Effect<undefined>
  })
  for (const config of Object.values(table)) Effect.runSync(Effect.result(config.parse(nothing)))
  return [...names]
}
