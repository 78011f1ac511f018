// What a verb says beside its answers.
import { Console } from "effect"
import { printable } from "#telemetry/printable.ts"

/**
 * A message to stderr, so that stdout holds answers only. It may have several lines; what stands in
 * them may come from NATS or from another server.
 */
export const note = (text: string) =>
  Console.error(`bellcast: ${text.split("\n").map(printable).join("\n")}`)
