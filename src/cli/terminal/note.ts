// Messages of a verb beside its output.
import * as Console from "effect/Console"
import { printable } from "#telemetry/printable.ts"

/**
 * Prints a message to stderr, so that stdout has only the verb's output. Escapes control
 * characters: the text may come from NATS or another server.
 */
export const note = (text: string) =>
  Console.error(`bellcast: ${text.split("\n").map(printable).join("\n")}`)
