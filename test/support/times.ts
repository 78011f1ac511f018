// Times near now, as publishers write them: RFC 3339 in UTC.

/** The time in so many milliseconds. Negative: before now. */
export const inMillis = (millis: number): string => new Date(Date.now() + millis).toISOString()

/** The time in so many hours. Negative: before now. */
export const inHours = (hours: number): string => inMillis(hours * 3_600_000)

/**
 * How early the clock of a service may be, in milliseconds: it reads the server's time by a
 * request, and may be wrong by as long as the request took.
 */
export const earlyMillisMax = 50
