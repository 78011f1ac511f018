// Log lines for a terminal: time, level, message and fields instead of JSON.
import pino from "pino"
import { printable, printableJson } from "./printable.ts"

/** `name=value`; a value that could be read as several fields is quoted. */
const pair = ([name, value]: readonly [string, unknown]): string => {
  const isPlain = typeof value === "string" && /^[^\s"=]+$/.test(value)
  return printable(`${name}=${isPlain ? value : printableJson(value)}`)
}

/** Lines after the first are indented, so that a message cannot forge a log line of its own. */
const indented = (message: unknown): string =>
  String(message).split("\n").map(printable).join("\n    ")

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

/** A destination for pino that rewrites each JSON line and writes it to stdout at once. */
export const prettyStream = {
  write(line: string) {
    const { err, level, msg, time, ...rest } = JSON.parse(line) as Record<string, unknown>
    const name =
      Object.keys(pino.levels.values).find((each) => pino.levels.values[each] === level) ?? ""
    const fields = { ...rest, ...(err === undefined ? {} : { err: describe(err) }) }
    const at = new Date(Number(time)).toISOString().slice(11, 23)
    const words = [at, name.padEnd(5), indented(msg), ...Object.entries(fields).map(pair)]
    process.stdout.write(`${words.join(" ")}\n`)
  },
  flush: () => {}
}
