// A log line about an event that others cause: at most one in ten seconds, however often they do.
import * as Effect from "effect/Effect"
import { monotonicMillis } from "#clock/clocks.ts"

const everyMillis = 10_000

/**
 * Logs a warning at most every ten seconds, with the fields of the latest case and, as `count`, the
 * number of cases since the last line. `write`: another level than warning.
 */
export const makeRateLimitedLog = (
  message: string,
  write: typeof Effect.logWarning = Effect.logWarning
) => {
  let writtenAt = Number.NEGATIVE_INFINITY
  let count = 0
  return Effect.fnUntraced(function* (fields: Readonly<Record<string, unknown>>) {
    count += 1
    const now = yield* monotonicMillis
    if (now - writtenAt < everyMillis) return
    const seen = count
    writtenAt = now
    count = 0
    yield* write(message, { ...fields, count: seen })
  })
}
