// Points in time in messages: milliseconds since the epoch, until the end of the year 9999. Pure.
import * as Schema from "effect/Schema"

/**
 * Bounded, because the next timestamp of a user is at least one more than the last: after the
 * largest integer there would be none.
 */
export const Timestamp = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_799_999 }))
)

const rfc3339 = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i

/** The milliseconds since the epoch of a time of RFC 3339; undefined: the text is none. */
export const millisOf = (text: string): number | undefined => {
  const [, day] = rfc3339.exec(text) ?? []
  const millis = day === undefined ? Number.NaN : Date.parse(text.toUpperCase())
  // Date.parse takes 30 February for 2 March.
  const midnight = Date.parse(`${day}T00:00:00Z`)
  return Number.isNaN(millis) || new Date(midnight).toISOString().slice(0, 10) !== day
    ? undefined
    : millis
}
