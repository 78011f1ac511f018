// Times as people type them, in a zone: days on which clocks change have hours that do not exist,
// and hours that come twice.

const hourMillis = 3_600_000
const formats = new Map<string, Intl.DateTimeFormat>()

const formatOf = (zone: string): Intl.DateTimeFormat => {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric"
    })
  formats.set(zone, format)
  return format
}

/** Browsers report the year 2 once the first digit of 2026 is typed. */
const firstYear = 2_000
/** A field cannot show a year of five digits, which another zone may make of 9999. */
const lastYear = 9_998

/** A time that can be typed; undefined: none. */
export const timeOf = (at: string): number | undefined => {
  const time = Date.parse(at)
  const year = new Date(time).getUTCFullYear()
  return year >= firstYear && year <= lastYear ? time : undefined
}

/** The clock on the wall in a zone, as if it were UTC. */
const wallOf = (at: number, zone: string): number => {
  const parts = Object.fromEntries(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)])
  ) as Record<"year" | "month" | "day" | "hour" | "minute" | "second", number>
  const { day, hour, minute, month, second, year } = parts
  return Date.UTC(year, month - 1, day, hour, minute, second)
}

/** How far the zone is ahead of UTC, in ms. */
const offsetOf = (at: number, zone: string): number =>
  wallOf(at, zone) - Math.floor(at / 1_000) * 1_000

const two = (value: number): string => String(value).padStart(2, "0")

/** For an input: "2026-12-24T18:00". */
export const localOf = (at: number, zone: string): string =>
  new Date(wallOf(at, zone)).toISOString().slice(0, 16)

export interface Moment {
  readonly at: number
  /** This hour does not exist, as clocks go forward: `at` is as much later. */
  readonly isSkipped: boolean
  /** The other time at which clocks show the same, as they go back. */
  readonly again: number | undefined
}

/**
 * The time that was typed in a zone; undefined: none, or its year is not typed to the end. The
 * earlier one where an hour comes twice.
 */
export const momentOf = (local: string, zone: string): Moment | undefined => {
  const wall = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(local) ? timeOf(`${local}Z`) : undefined
  if (wall === undefined) return undefined
  // Clocks change at most once in two days.
  const offsets = [-24, 24].map((hours) => offsetOf(wall + hours * hourMillis, zone))
  const found = [...new Set(offsets)]
    .map((offset) => wall - offset)
    .filter((at) => wallOf(at, zone) === wall)
    .sort((a, b) => a - b)
  const [first, again] = found
  if (first !== undefined) return { at: first, isSkipped: false, again }
  return { at: wall - offsets[0]!, isSkipped: true, again: undefined }
}

/** With the offset of the zone then: "2026-12-24T18:00:00+01:00". */
export const rfc3339 = (at: number, zone: string): string => {
  const minutes = Math.round(offsetOf(at, zone) / 60_000)
  const [sign, size] = [minutes < 0 ? "-" : "+", Math.abs(minutes)]
  const clock = new Date(wallOf(at, zone)).toISOString().slice(0, 19)
  return `${clock}${sign}${two(Math.floor(size / 60))}:${two(size % 60)}`
}

/** The service takes at most this far ahead. */
export const aheadMaxMillis = 30 * 24 * hourMillis

export type TimeFault = "unreadable" | "past" | "far"

/** Why a draft cannot be sent at its time. */
export const timeFault = (at: string, now: number): TimeFault | undefined => {
  const time = Date.parse(at)
  if (Number.isNaN(time)) return "unreadable"
  if (time < now) return "past"
  return time > now + aheadMaxMillis ? "far" : undefined
}
