// Spans of time in flags: 90d, 12h, 30m, 45s.

const unitMillis: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 24 * 3_600_000
}

export const spanFault = "Expected a number and a unit, such as 90d, 12h, 30m or 45s"

/** The milliseconds of a span, at least one second and at most 100 years; undefined: it is none. */
export const spanMillisOf = (text: string): number | undefined => {
  const [, number = "", unit = ""] = /^(\d{1,10})([smhd])$/.exec(text) ?? []
  const millis = Number(number) * (unitMillis[unit] ?? 0)
  return millis > 0 && millis <= 36_525 * unitMillis["d"]! ? millis : undefined
}
