// How a rebuild says what it does, how far it is, and why it cannot go on: the verb prints it, a
// start logs it.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** A rebuild cannot go on. `message` says why, and what to do. */
export class RebuildFailed extends Schema.TaggedError<RebuildFailed>()("RebuildFailed", {
  message: Schema.String,
  /** Whether the next try may succeed though nobody has done anything. */
  passes: Schema.Boolean
}) {}

export const failed = (message: string) => new RebuildFailed({ message, passes: false })

/** Another process was in the way. */
export const hindered = (message: string) => new RebuildFailed({ message, passes: true })

/** How far a rebuild is: it folds LOG, then WORK, and then writes bucket after bucket. */
export interface HowFar {
  /** The stream that is folded, or the stream of the bucket that is written. */
  readonly stream: string
  readonly step: "folded" | "written"
  /** The sequence of the last message that was folded, or the entries that were written. */
  readonly done: number
  /** The last sequence of the stream; undefined: nobody has counted. */
  readonly of?: number
}

export const inWords = ({ done, of, step, stream }: HowFar): string =>
  step === "written"
    ? `${done} entries of ${stream} were written`
    : `${stream} is folded up to message ${done}${of === undefined ? "" : ` of ${of}`}`

interface Says {
  /** Says something once. */
  readonly note: (text: string) => Effect.Effect<void>
  /** Says how far the rebuild is. Called several times a second. */
  readonly reach: (howFar: HowFar) => Effect.Effect<void>
}

/** Where a rebuild says something. Unless somebody provides another place: in the log. */
export const Notes = Context.Reference<Says>("bellcast/rebuild/Notes", {
  defaultValue: () => ({ note: (text) => Effect.logInfo(text), reach: () => Effect.void })
})

/** Says what the rebuild does now. */
export const note = (text: string) => Effect.flatMap(Notes, (says) => says.note(text))

/** Says how far the rebuild is. */
export const reach = (howFar: HowFar) => Effect.flatMap(Notes, (says) => says.reach(howFar))
