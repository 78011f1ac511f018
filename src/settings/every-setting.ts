// Reads a whole table of settings, so that a failed start names every wrong setting at once, and
// finds settings with unknown names. Most are typing errors, which would silently leave a default
// in force.
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

/** The values of a table. Fails with every fault at once. */
export const everySetting = Effect.fnUntraced(function* <C extends Table>(table: C) {
  const { faults, values } = yield* readEvery(table)
  if (faults.length > 0) return yield* settingsFault(faults)
  return values as Values<C>
})

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

/**
 * An unknown name is a fault in the file and a warning in the environment: Kubernetes sets
 * BELLCAST_SERVICE_HOST and similar names for a Service called bellcast. A setting of a policy that
 * is off, which `policyOf` names, is always a warning.
 */
export const unknownSettings = (
  { found }: SourceShape,
  names: ReadonlyArray<string>,
  policyOf: (name: string) => string | undefined
) => {
  const known = [...names, ...elsewhere]
  const faults: Array<string> = []
  const warnings: Array<string> = []
  for (const [name, { inFile, place }] of found) {
    if (known.includes(name) || (!inFile && onlyInEnvironment.test(name))) continue
    const policy = policyOf(name)
    if (policy !== undefined) {
      warnings.push(
        `${place}: a setting of the policy ${policy}, which is off: ` +
          "BELLCAST_AUTH_POLICIES does not name it"
      )
      continue
    }
    const meant = closest(name, known)
    const hint = meant === undefined ? "" : `, perhaps ${spelled(meant, inFile)} is meant`
    if (inFile) faults.push(`${place}: No such setting${hint}`)
    else warnings.push(`${place}: no such setting${hint}`)
  }
  return { faults, warnings }
}

/**
 * Settings outside the service's tables: of the search for a nats-server and of the command line.
 */
const elsewhere = ["BELLCAST_NATS_SERVER", "BELLCAST_TOKEN", "BELLCAST_URL", "BELLCAST_USER"]

const onlyInEnvironment = /^BELLCAST_(CONFIG$|TEST_)/

/** Edit distance: letters to insert, delete, change, or swap with their neighbour. */
const distance = (a: string, b: string): number => {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const [above, row] = [rows[i - 1]!, [i]]
    for (let j = 1; j <= b.length; j++) {
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          above[j]! + 1,
          row[j - 1]! + 1,
          above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
          swapped ? rows[i - 2]![j - 2]! + 1 : Infinity
        )
      )
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}

/** The known name that was probably meant. Undefined: all differ in more than a third. */
const closest = (name: string, known: ReadonlyArray<string>): string | undefined => {
  const bare = (each: string) => each.replace(/^BELLCAST_/, "")
  const ranked = known
    .map((each) => ({ each, far: distance(bare(name), bare(each)) }))
    .sort((a, b) => a.far - b.far)
  const [first] = ranked
  return first !== undefined && first.far * 3 <= bare(first.each).length ? first.each : undefined
}

const spelled = (name: string, inFile: boolean): string =>
  inFile ? `bellcast.${name.slice("BELLCAST_".length).toLowerCase()}` : name
