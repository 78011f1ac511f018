// Effect's log into pino: JSON lines on stdout, or one short line each on a terminal. What stands under a name that holds secrets is struck out.
import { Cause, Layer, Logger, References } from "effect"
import pino from "pino"
import { printable, printableJson } from "./printable.ts"

const level = {
  Trace: "trace",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "fatal"
} as const
const secrets = new Set([
  "authorization",
  "endpoint",
  "keys",
  "auth",
  "p256dh",
  "privatekey",
  "token",
  "password",
  "secret"
])
/** What a line shows of one field at most: it is for people, and a value from outside may be of any size. */
const depthMax = 5
const itemsMax = 50
const charsMax = 4_096
/** Lines wait so long for others: a write for each would be a system call of 13 us. */
const gatherMillis = 20
const gatherChars = 16_384
/** Lines that cannot be written wait up to this size; later ones are dropped. */
const unwrittenBytesMax = 1024 ** 2
// Endpoints are bearer tokens (RFC 8030 section 8.3); an error from deep below may carry one in its text.
const urls =
  /\b((?:https?|wss?|nats|tls):\/\/)([^\s"'<>/?#]*@)?([^\s"'<>/?#@,]*[^\s"'<>/?#@,.;:!)])?([^\s"'<>]*)/gi
/** What may follow a host and tells nothing: a sentence that ends, the next word of a list. */
const punctuation = /^[/.,;:!?)]*$/
/** As it stands in a path or a query: some clients take the endpoint for the id of a subscription. */
const escapedUrls = /(https?|wss?|nats|tls)(%3a(?:%2f|\/){2}|:%2f%2f)[^\s"'<>&]*/gi
/** Of every URL the scheme and the host: no path, no query, no password. Of one that is percent-encoded the scheme. */
export const withoutSecrets = (given: string): string => {
  const text = given.includes("%")
    ? given.slice(0, 2 * charsMax).replace(escapedUrls, "$1$2...")
    : given
  const clean = text.includes("://")
    ? text
        .slice(0, 2 * charsMax)
        .replace(
          urls,
          (
            _,
            scheme: string,
            credentials: string | undefined,
            host: string | undefined,
            rest: string
          ) =>
            credentials === undefined && punctuation.test(rest)
              ? scheme + (host ?? "") + rest
              : `${scheme}${host ?? ""}/...`
        )
    : text
  return clean.length <= charsMax ? clean : `${clean.slice(0, charsMax)}...`
}

/** A field as a line may show it; `depth` is how deep objects are looked into. pino's own redaction costs more than the rest of a line. */
export const fieldOf = (name: string, value: unknown, depth = depthMax): unknown => {
  if (secrets.has(name.toLowerCase())) return "[redacted]"
  if (typeof value === "string") return withoutSecrets(value)
  if (typeof value !== "object" || value === null) return value
  if (value instanceof Error) return errorFields(value)
  // Bytes may be keys or payloads.
  if (depth === 0 || ArrayBuffer.isView(value)) return "[...]"
  if (value instanceof URL) return withoutSecrets(value.href)
  if (Array.isArray(value))
    return value.slice(0, itemsMax).map((inner) => fieldOf("", inner, depth - 1))
  const entries = Object.entries(value).slice(0, itemsMax)
  return Object.fromEntries(entries.map(([name, inner]) => [name, fieldOf(name, inner, depth - 1)]))
}

const errorFields = (error: unknown, depth = 0): Record<string, unknown> => {
  if (!(error instanceof Error)) return { message: withoutSecrets(String(error)) }
  const { cause, code, name, operation } = error as Error & {
    code?: unknown
    operation?: unknown
    cause?: unknown
  }
  return {
    type: name,
    ...(operation === undefined ? {} : { operation: fieldOf("", operation) }),
    ...(code === undefined ? {} : { code: fieldOf("", code) }),
    message: withoutSecrets(error.message),
    ...(cause === undefined || depth > 3 ? {} : { cause: errorFields(cause, depth + 1) }),
    ...(depth === 0 && operation === undefined ? { stack: withoutSecrets(error.stack ?? "") } : {})
  }
}

/** Lines on stdout, gathered; `flush` writes those that wait. None is left behind at exit. */
const gathered = () => {
  const stdout = pino.destination({ dest: 1, sync: true, maxLength: unwrittenBytesMax })
  // A disk that is full, a reader that left: lines are lost, but the service goes on.
  stdout.on("error", () => {})
  let lines = ""
  let timer: NodeJS.Timeout | undefined
  const flush = () => {
    clearTimeout(timer)
    timer = undefined
    if (lines !== "") stdout.write(lines)
    lines = ""
  }
  process.on("exit", flush)
  const write = (line: string) => {
    // pino escapes C0 only, and ends each line with \n.
    lines += `${printable(line.slice(0, -1))}\n`
    if (lines.length >= gatherChars) flush()
    else timer ??= setTimeout(flush, gatherMillis).unref()
  }
  return { write, flush }
}

/** Sends everything logged through Effect to pino at `minimum` and above. `pretty` writes lines for people. */
export const loggerLayer = (minimum: pino.Level, pretty: boolean) => {
  const output = pretty ? prettyStream : gathered()
  const root = pino(
    {
      level: minimum,
      base: null,
      serializers: {
        err: (error: unknown) => (error instanceof Error ? errorFields(error) : fieldOf("", error))
      }
    },
    output
  )
  const logger = Logger.make<unknown, void>(({ cause, fiber, logLevel, message }) => {
    if (logLevel === "None" || logLevel === "All") return
    const fields: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(fiber.getRef(References.CurrentLogAnnotations)))
      fields[name] = fieldOf(name, value)
    if (cause.reasons.length > 0) fields["err"] = Cause.squash(cause)
    const words: Array<string> = []
    for (const part of Array.isArray(message) ? message : [message]) {
      if (Cause.isCause(part)) fields["err"] = Cause.squash(part)
      else if (part instanceof Error) fields["err"] = part
      else if (typeof part === "object" && part !== null) {
        for (const [name, value] of Object.entries(part)) fields[name] = fieldOf(name, value)
      } else words.push(String(part))
    }
    root[level[logLevel]](fields, withoutSecrets(words.join(" ")))
    // What may be the last words is written at once.
    if (logLevel !== "Info" && logLevel !== "Debug" && logLevel !== "Trace") output.flush()
  })
  return Layer.merge(
    Logger.layer([logger]),
    Layer.succeed(References.MinimumLogLevel, root.isLevelEnabled("debug") ? "Debug" : "Info")
  )
}

/** `name=value`; a value that could be taken for several fields is quoted. */
const pair = ([name, value]: readonly [string, unknown]): string => {
  const isPlain = typeof value === "string" && /^[^\s"=]+$/.test(value)
  return printable(`${name}=${isPlain ? value : printableJson(value)}`)
}

/** A message may have several lines; those after the first are indented, so none can be forged. */
const indented = (message: unknown): string =>
  String(message).split("\n").map(printable).join("\n    ")

const prettyStream = {
  write(line: string) {
    const { err, level: number, msg, time, ...rest } = JSON.parse(line) as Record<string, unknown>
    const name =
      Object.keys(pino.levels.values).find((each) => pino.levels.values[each] === number) ?? ""
    const fields = { ...rest, ...(err === undefined ? {} : { err: describe(err) }) }
    const at = new Date(Number(time)).toISOString().slice(11, 23)
    const words = [at, name.padEnd(5), indented(msg), ...Object.entries(fields).map(pair)]
    process.stdout.write(`${words.join(" ")}\n`)
  },
  flush: () => {}
}

const describe = (error: unknown): string => {
  const { cause, message, operation } = error as {
    message?: string
    operation?: string
    cause?: unknown
  }
  return [operation, message, cause === undefined ? undefined : describe(cause)]
    .filter((part) => part !== undefined && part !== "")
    .join(": ")
}
