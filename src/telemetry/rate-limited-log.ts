// Lines about what others cause: as often as they like to cause it, but one line in ten seconds.
import { Clock, Effect } from "effect"

const everyMillis = 10_000

/** A warning (or `write`) that is written at most every ten seconds, with the fields of the latest case and how many there were since the last line. */
export const makeRateLimitedLog = (
  message: string,
  write: typeof Effect.logWarning = Effect.logWarning
) => {
  let writtenAt = Number.NEGATIVE_INFINITY
  let count = 0
  return Effect.fnUntraced(function* (fields: Readonly<Record<string, unknown>>) {
    count += 1
    const now = yield* Clock.currentTimeMillis
    if (now - writtenAt < everyMillis) return
    const seen = count
    writtenAt = now
    count = 0
    yield* write(message, { ...fields, count: seen })
  })
}
