// Flags that several verbs have.
import * as Flag from "effect/cli/Flag"
import * as Option from "effect/Option"

/** A flag that is off unless it is given. */
export const onOff = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** For verbs that print one line of JSON for each row. */
export const jsonFlag = onOff("json", "Print JSON lines")

/** The time in a text: a date, with or without a time, or `HH:MM` of today in UTC. */
const timeIn = (text: string): Option.Option<Date> => {
  const today = new Date().toISOString().slice(0, 11)
  const time = new Date(/^\d\d:\d\d$/.test(text) ? `${today}${text}Z` : text)
  return Number.isNaN(time.getTime()) ? Option.none() : Option.some(time)
}

/** A flag with a time. */
export const timeFlag = (name: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description}: 2026-11-23, 2026-11-23T14:05Z, or 14:05 of today in UTC`),
    Flag.filterMap(timeIn, (text) => `Expected a time, got ${text}`),
    Flag.optional
  )

/** How many rows are printed at most. */
export const limitFlag = Flag.Int("limit").pipe(
  Flag.withDescription("At most so many"),
  Flag.withDefault(20),
  Flag.filter(
    (limit) => limit >= 1,
    (limit) => `Expected a whole number from 1 on, got ${limit}`
  )
)
