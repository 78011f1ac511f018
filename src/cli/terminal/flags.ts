// Arguments and flags in the forms that several verbs have.
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"
import { millisOf } from "#domain/timestamp.ts"

/** A flag that is off unless it is given. */
export const onOff = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** A text that must be given. */
export const argument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description))

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

const dateOrTime =
  /^(?:(\d{4}-\d\d-\d\d)(?:T(?=\d)|$))?(?:(\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/i

/**
 * The time in a text: a date, a time of today, or both; in UTC unless it has an offset. `Date`
 * would take `5` for a month.
 */
const timeIn = (text: string): Option.Option<Date> => {
  const today = new Date().toISOString().slice(0, 10)
  const [, day = today, minutes = "00:00", seconds = ":00", offset = "Z"] =
    dateOrTime.exec(text) ?? []
  const isTime = text !== "" && dateOrTime.test(text)
  const millis = isTime ? millisOf(`${day}T${minutes}${seconds}${offset}`) : undefined
  return Option.map(Option.fromUndefinedOr(millis), (found) => new Date(found))
}

/** A flag with a time. */
export const timeFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description}: 2026-11-23, 2026-11-23T14:05Z, or 14:05 of today in UTC`),
    Flag.filterMap(timeIn, (text) => `Expected a time, got ${text}`),
    Flag.optional
  )

/** The most rows that are printed. */
export const limitFlag = Flag.Int("limit").pipe(
  Flag.withDescription("At most so many"),
  Flag.withDefault(20),
  Flag.filter(
    (limit) => limit >= 1,
    (limit) => `Expected a whole number from 1 on, got ${limit}`
  )
)
