// The input of verbs: arguments and flags in the forms that several of them have, times and spans
// in flags, and the settings of the service where a verb runs.
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Struct from "effect/Struct"
import { settings } from "#config"
import { millisOf } from "#domain/timestamp.ts"
import { everySetting, type Table } from "#settings/every-setting.ts"
import { failedBy, note } from "./output.ts"

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

/** The publisher of a verb. */
export const sourceFlag = named("source", "SOURCE").pipe(
  Flag.withDescription("Who publishes: the principal nats:SOURCE, which needs the rights to"),
  Flag.withDefault("operator"),
  Flag.filter(
    (source) => /^[A-Za-z0-9_-]{1,64}$/.test(source),
    () => "Expected letters, digits, _ or -, 64 at most"
  )
)

const limitDefault = 20

/** The most rows that are printed. */
export const limitFlag = number("limit", "N").pipe(
  Flag.withDescription(`At most so many; unset: ${limitDefault}`),
  Flag.withDefault(limitDefault),
  Flag.filter(
    (limit) => limit >= 1,
    (limit) => `Expected a whole number from 1 on, got ${limit}`
  )
)

const dateOrTime =
  /^(?:(\d{4}-\d\d-\d\d)(?:T(?=\d)|$))?(?:(\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?)?$/i

interface Time {
  readonly text: string
  readonly date: Date
  /** Without an offset: the time of this machine's zone. */
  readonly isLocal: boolean
  /** Without a day: that time of today. */
  readonly isToday: boolean
}

/** The minutes that an offset is ahead of UTC. */
const minutesAhead = (offset: string): number => {
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(offset) ?? []
  return (sign === "-" ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0))
}

/**
 * The time in a text: a date, a time of today, or both; in the zone of this machine unless it has
 * an offset. `Date` would take `5` for a month.
 */
const timeIn = (text: string): Option.Option<Time> => {
  const found = text === "" ? null : dateOrTime.exec(text)
  if (found === null) return Option.none()
  const [, day, minutes = "00:00", seconds = ":00", offset] = found
  const now = new Date()
  const ahead = offset === undefined ? -now.getTimezoneOffset() : minutesAhead(offset)
  const today = new Date(now.getTime() + ahead * 60_000).toISOString().slice(0, 10)
  const local = `${day ?? today}T${minutes}${seconds}`
  const millis = millisOf(`${local}${offset ?? "Z"}`)
  if (millis === undefined) return Option.none()
  // Without an offset `Date` reads the time as that of this machine's zone.
  const date = new Date(offset === undefined ? local : millis)
  return Option.some({ text, date, isLocal: offset === undefined, isToday: day === undefined })
}

/** The zone of this machine: `TZ`, or what the system is set to. */
const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

const timeForms = "2026-11-23, 2026-11-23T14:05Z, or 14:05"

/**
 * A flag with a time. The command prints how it read one without an offset: the zone of a container
 * is rarely that of the person. `when`: `to come` refuses a time of today that is over.
 */
export const timeFlag = (name: string, description: string, when: "any" | "to come" = "any") =>
  named(name, "TIME").pipe(
    Flag.withDescription(`${description}: ${timeForms} of today in the zone of this machine`),
    Flag.filterMap(timeIn, (text) => `Expected a time such as ${timeForms}, got ${text}`),
    Flag.filter(
      ({ date, isToday }) => when === "any" || !isToday || date.getTime() > Date.now(),
      ({ text }) => `Expected a time to come: ${text} of today is over. Name the day, too`
    ),
    Flag.mapEffect(({ date, isLocal, text }) => {
      const told = `--${name} ${text} is ${date.toISOString()}: ${text} in ${zone()}`
      return Effect.as(isLocal ? note(told) : Effect.void, date)
    })
  )

const unitMillis: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000
}

/** The milliseconds of a span, at least one second and at most 100 years; undefined: it is none. */
export const spanMillisOf = (text: string): number | undefined => {
  const [, number = "", unit = ""] = /^(\d{1,10})([smhd])$/.exec(text) ?? []
  const millis = Number(number) * (unitMillis[unit] ?? 0)
  return millis > 0 && millis <= 36_525 * unitMillis["d"]! ? millis : undefined
}

/** A flag with a span, in milliseconds; `never` is infinite. */
export const spanFlag = (name: string, description: string) =>
  named(name, "SPAN").pipe(
    Flag.withDescription(`${description}: 90d, 12h, 30m or 45s`),
    Flag.filterMap(
      (text) =>
        Option.fromUndefinedOr(text === "never" ? Number.POSITIVE_INFINITY : spanMillisOf(text)),
      (text) => `Expected a span such as 90d, 12h, 30m or 45s, got ${text}`
    )
  )

/** The values of a table. Fails with every fault at once. */
export const valuesOf = <C extends Table>(table: C) =>
  Effect.mapError(everySetting(table), failedBy)

/** The values of these settings. */
export const ownSettings = <K extends keyof typeof settings>(...names: ReadonlyArray<K>) =>
  valuesOf(Struct.pick(settings, names))
