// Points in time in messages: milliseconds since the epoch, until the end of the year 9999. Pure.
import * as Schema from "effect/Schema"

/**
 * Bounded, because the next timestamp of a user is at least one more than the last: after the
 * largest integer there would be none.
 */
export const Timestamp = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_799_999 }))
)
