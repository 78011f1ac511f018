// Where settings come from, the first that has a value: the environment; a file of lines
// `bellcast.<name> = <value>`; with `--development`, values that are convenient on a developer's
// machine and unsafe on a server.
import { readFileSync } from "node:fs"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Read if it exists and BELLCAST_CONFIG names no other file. */
const fileDefault = "bellcast.ini"

/** The only argument of the service. */
export const developmentFlag = "--development"
/**
 * The values of `--development`. They open the service to everybody, so they count only while
 * everybody is a user: with another policy than basicauth the usual defaults hold.
 */
const development = {
  BELLCAST_AUTH_POLICIES: "basicauth",
  // `nats:operator` is who publishes by the command `bellcast publish`.
  BELLCAST_CHANNEL_WRITE_PRINCIPALS: "system.Authenticated nats:operator",
  BELLCAST_ALLOW_LOOPBACK_ENDPOINTS: "true",
  BELLCAST_PUBLIC_METRICS: "true",
  BELLCAST_SHUTDOWN_WAIT_SECONDS: "0",
  // All users come from this machine's address.
  BELLCAST_NEW_USERS_PER_ADDRESS_PER_HOUR_MAX: "0",
  BELLCAST_REQUESTS_PER_ADDRESS_PER_MINUTE_MAX: "0",
  BELLCAST_REQUESTS_PER_USER_PER_MINUTE_MAX: "0",
  BELLCAST_CHANGES_PER_ADDRESS_PER_HOUR_MAX: "0",
  BELLCAST_CHANGES_PER_USER_PER_HOUR_MAX: "0",
  BELLCAST_NEW_CHANNELS_PER_HOUR_MAX: "0"
}

/** Whether policies verify nobody: none is set, or each is basicauth. */
export const verifyNobody = (policies: string): boolean =>
  policies
    .split(/[\s,]+/)
    .every((policy) => policy === "" || /^basicauth(-[a-z0-9-]*)?$/.test(policy))

export interface Found {
  readonly value: string
  /** For messages: `BELLCAST_PORT`, or `bellcast.port (bellcast.ini, line 3)`. */
  readonly place: string
  readonly inFile: boolean
}

export interface SourceShape {
  /** By BELLCAST_<NAME>. An empty value counts as unset. */
  readonly found: ReadonlyMap<string, Found>
  /** Lines of the file that cannot be read. Never quoted, as they may hold secrets. */
  readonly faults: ReadonlyArray<string>
  /** Whether the values of `--development` hold: everybody is a user. */
  readonly isDevelopment: boolean
}

/** The settings given to this process. */
export const Source: Context.Reference<SourceShape> = Context.Reference<SourceShape>(
  "bellcast/settings/Source",
  {
    defaultValue: () => ({ found: new Map(), faults: [], isDevelopment: false })
  }
)

type FromFile = Pick<SourceShape, "found" | "faults">

const setting = /^bellcast\.([a-z][a-z0-9_]*)\s*=\s*(.*)$/

/**
 * One setting on a line, without quotes or escapes. Lines that begin with `#` or `;` are comments.
 */
const parseFile = (text: string, file: string): FromFile => {
  const found = new Map<string, Found>()
  const faults: Array<string> = []
  for (const [i, line] of text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .entries()) {
    const trimmed = line.trim()
    if (trimmed === "" || /^[#;]/.test(trimmed)) continue
    const at = `${file}, line ${i + 1}`
    const [, name, value] = setting.exec(trimmed) ?? []
    if (name === undefined || value === undefined) {
      faults.push(`${at}: Expected bellcast.<name> = <value>`)
      continue
    }
    const key = `BELLCAST_${name.toUpperCase()}`
    const earlier = found.get(key)
    if (earlier !== undefined)
      faults.push(`${at}: bellcast.${name} stands in this file twice: ${earlier.place}`)
    else found.set(key, { value, place: `bellcast.${name} (${at})`, inFile: true })
  }
  return { found, faults }
}

const readFile = (named: string | undefined): FromFile => {
  const file = named ?? fileDefault
  try {
    return parseFile(readFileSync(file, "utf8"), file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const faults =
      named === undefined && code === "ENOENT" ? [] : [`${file}: Cannot be read (${code})`]
    return { found: new Map(), faults }
  }
}

/** The environment wins over the file. */
export const readSource = (
  env: Readonly<Record<string, string | undefined>>,
  args: ReadonlyArray<string> = []
): SourceShape => {
  const { faults, found } = readFile(env["BELLCAST_CONFIG"] || undefined)
  const given = Object.entries(env).flatMap(([name, value]) =>
    value && name.startsWith("BELLCAST_")
      ? [[name, { value, place: name, inFile: false }] as const]
      : []
  )
  const written = [...found].filter(([, { value }]) => value !== "")
  const set = new Map([...written, ...given])
  const policies = set.get("BELLCAST_AUTH_POLICIES")?.value ?? ""
  const isDevelopment = args.includes(developmentFlag) && verifyNobody(policies)
  const convenient = Object.entries(isDevelopment ? development : {}).map(
    ([name, value]) => [name, { value, place: developmentFlag, inFile: false }] as const
  )
  return { found: new Map([...convenient, ...set]), faults, isDevelopment }
}

/** Provides these settings to Config and Source. */
export const layerOf = (source: SourceShape): Layer.Layer<never> => {
  const values = Object.fromEntries([...source.found].map(([name, { value }]) => [name, value]))
  return Layer.merge(
    ConfigProvider.layer(ConfigProvider.fromEnv({ env: values })),
    Layer.succeed(Source, source)
  )
}

/** The settings of this process. Faults of the file are reported by failed-start.ts. */
export const sourceLayer: Layer.Layer<never> = Layer.unwrap(
  Effect.sync(() => layerOf(readSource(process.env, process.argv.slice(2))))
)
