// How a verb fails: with one line on standard error, and the exit code 1.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { note } from "./note.ts"

/** A verb cannot go on. The message is printed. */
export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", {
  message: Schema.String
}) {}

export const failed = (message: string) => new VerbFailed({ message })

/** A failure with the message of another error. */
export const failedBy = ({ message }: { readonly message: string }) => failed(message)

/** Runs a verb, or a part of it, and prints its failure. */
export const noted = <A, E extends { readonly message: string }, R>(verb: Effect.Effect<A, E, R>) =>
  Effect.tapError(verb, ({ message }) => note(message))
