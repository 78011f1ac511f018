// What a verb says beside its answers.
import { Console } from "effect"

/** One line to stderr, so that stdout holds answers only. */
export const note = (text: string) => Console.error(`bellcast: ${text}`)
