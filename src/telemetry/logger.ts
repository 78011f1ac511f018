// The log: Effect's logger writes to pino. JSON lines on stdout, or short lines on a terminal.
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import pino from "pino"
import { errorFields, fieldOf, printable, printableJson, withoutSecrets } from "./redaction.ts"

const pinoLevels = {
  Trace: "trace",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "fatal"
} as const
/** Levels that wait in the buffer. Others are written at once: the process may end next. */
const bufferedLevels: ReadonlySet<string> = new Set(["Trace", "Debug", "Info"])

/** Lines wait for each other, as each write is a system call of 13 us. */
const flushMillis = 50
const flushChars = 8_192
/** Size up to which lines wait that cannot be written. Later ones are dropped. */
const unwrittenBytesMax = 1024 ** 2

/**
 * Stdout with pino's buffer. Flushed with flush(), which writes synchronously here. flushSync()
 * would call fsync each time, and never return once the reader of a pipe has gone.
 */
const bufferedStdout = () => {
  const stdout = pino.destination({
    dest: 1,
    sync: true,
    minLength: flushChars,
    maxLength: unwrittenBytesMax
  })
  // If the disk is full or the reader has gone, lines are lost, but the service goes on.
  stdout.on("error", () => {})
  // pino flushes at exit only when it writes asynchronously.
  process.on("exit", () => stdout.flush())
  let isWaiting = false
  const flushLate = () => {
    isWaiting = false
    stdout.flush()
  }
  return {
    write: (line: string) => void stdout.write(line),
    flush: () => stdout.flush(),
    // Not pino's periodicFlush, which wakes an idle process 20 times a second.
    flushSoon: () => {
      if (isWaiting) return
      isWaiting = true
      setTimeout(flushLate, flushMillis).unref()
    }
  }
}

/** `name=value`; a value that could be read as several fields is quoted. */
const pair = ([name, value]: readonly [string, unknown]): string => {
  const isPlain = typeof value === "string" && /^[^\s"=]+$/.test(value)
  return printable(`${name}=${isPlain ? value : printableJson(value)}`)
}

/** Lines after the first are indented, so that a message cannot forge a log line of its own. */
const indented = (message: unknown): string =>
  String(message).split("\n").map(printable).join("\n    ")

const textOf = (error: unknown): string => {
  const { cause, message, operation } = error as {
    message?: string
    operation?: string
    cause?: unknown
  }
  return [operation, message, cause === undefined ? undefined : textOf(cause)]
    .filter((part) => part !== undefined && part !== "")
    .join(": ")
}

/** A destination for pino that rewrites each JSON line and writes it to stdout at once. */
const prettyStream = {
  write(line: string) {
    const { err, level, msg, time, ...rest } = JSON.parse(line) as Record<string, unknown>
    const name =
      Object.keys(pino.levels.values).find((each) => pino.levels.values[each] === level) ?? ""
    const fields = { ...rest, ...(err === undefined ? {} : { err: textOf(err) }) }
    const at = new Date(Number(time)).toISOString().slice(11, 23)
    const words = [at, name.padEnd(5), indented(msg), ...Object.entries(fields).map(pair)]
    process.stdout.write(`${words.join(" ")}\n`)
  },
  flush: () => {},
  flushSoon: () => {}
}

interface Line {
  readonly fields: Record<string, unknown>
  readonly words: Array<string>
}

const addPart = ({ fields, words }: Line, part: unknown): void => {
  if (Cause.isCause(part)) fields["err"] = Cause.squash(part)
  else if (part instanceof Error) fields["err"] = part
  else if (typeof part === "object" && part !== null) {
    for (const [name, value] of Object.entries(part)) fields[name] = fieldOf(name, value)
  } else words.push(String(part))
}

/** Message and fields of one line. Later parts of the message win over annotations. */
const lineOf = ({ cause, fiber, message }: Logger.Options<unknown>): Line => {
  const line: Line = { fields: {}, words: [] }
  addPart(line, fiber.getRef(References.CurrentLogAnnotations))
  if (cause.reasons.length > 0) line.fields["err"] = Cause.squash(cause)
  for (const part of Array.isArray(message) ? message : [message]) addPart(line, part)
  return line
}

const serializers = {
  err: (error: unknown) => (error instanceof Error ? errorFields(error) : fieldOf("", error))
}

/** Writes a line of another process, which is JSON, among those of this one. */
export const LogLines: Context.Reference<{ readonly write: (line: string) => void }> =
  Context.Reference<{ readonly write: (line: string) => void }>("bellcast/telemetry/LogLines", {
    defaultValue: () => ({ write: () => {} })
  })

/** A line that is not of a log, such as one of a library, is written as it is. */
const isOfLog = (line: string): boolean => /^\{.*\}$/.test(line)

/**
 * Sends everything logged through Effect to pino at `minimum` and above. `pretty`: for people.
 * `process`: the name of this process in each line; undefined: lines have none.
 */
export const loggerLayer = (minimum: pino.Level, pretty: boolean, process?: string) => {
  const output = pretty ? prettyStream : bufferedStdout()
  // pino escapes C0 only, and ends each line with \n.
  const base = process === undefined ? null : { process }
  const hooks = { streamWrite: (line: string) => `${printable(line.slice(0, -1))}\n` }
  const root = pino({ level: minimum, base, serializers, hooks }, output)
  const logger = Logger.make<unknown, void>((options) => {
    const { logLevel } = options
    if (logLevel === "None" || logLevel === "All") return
    const { fields, words } = lineOf(options)
    root[pinoLevels[logLevel]](fields, withoutSecrets(words.join(" ")))
    if (bufferedLevels.has(logLevel)) output.flushSoon()
    else output.flush()
  })
  const write = (line: string) => {
    if (pretty && !isOfLog(line)) globalThis.process.stdout.write(`${printable(line)}\n`)
    else output.write(`${line}\n`)
    output.flushSoon()
  }
  return Layer.mergeAll(
    Logger.layer([logger]),
    Layer.succeed(LogLines, { write }),
    Layer.succeed(References.MinimumLogLevel, root.isLevelEnabled("debug") ? "Debug" : "Info")
  )
}
