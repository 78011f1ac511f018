// Arguments and flags in the forms that several verbs have.
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"

/** A flag that is off unless it is given. */
export const onOff = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A text that must be given. */
export const argument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description))

/**
 * A flag with a text. `placeholder`: what `--help` and the documents call the text, in capitals; a
 * word means the same form in every verb (`test/unit/cli-placeholders.test.ts`).
 */
export const named = (name: string, placeholder: string) =>
  Flag.String(name).pipe(Flag.withMetavar(placeholder))

/** A flag with a whole number. */
export const number = (name: string, placeholder: string) =>
  Flag.Int(name).pipe(Flag.withMetavar(placeholder))

/** A flag that may be left out. */
export const optional = <A>(flag: Flag.Flag<A>, description: string) =>
  flag.pipe(Flag.withDescription(description), Flag.optional)

/** A flag that may be given any number of times. */
export const several = <A>(flag: Flag.Flag<A>, description: string) =>
  flag.pipe(Flag.withDescription(`${description}; repeatable`), Flag.atLeast(0))

/** For verbs that print one line of JSON for each row. */
export const jsonFlag = onOff("json", "Print JSON lines")

/** For verbs that show one thing. */
export const objectFlag = onOff("json", "Print one JSON object")

/** The most rows that are printed. */
export const limitFlag = number("limit", "N").pipe(
  Flag.withDescription("At most so many"),
  Flag.withDefault(20),
  Flag.filter(
    (limit) => limit >= 1,
    (limit) => `Expected a whole number from 1 on, got ${limit}`
  )
)
