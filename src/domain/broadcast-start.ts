// The start of a broadcast that is accepted before it starts. Pure.
import { millisOf } from "./timestamp.ts"

/** Header of such a broadcast: a time of RFC 3339, as `at` in the body of a request. */
export const startHeader = "Bellcast-Start-At"

const aheadDaysMax = 30
/** The longest time between the request that gives a broadcast its start, and that start. */
const aheadMillisMax = aheadDaysMax * 24 * 60 * 60_000
/**
 * A time that has just passed means at once: the clock of the publisher may be behind, and a
 * request is repeated for as long as its Idempotency-Key counts.
 */
const pastMillisMax = 60 * 60_000

/**
 * Most broadcasts that wait for their start. The planner and each worker and gateway keep them in
 * memory, at up to 1 KB each, for up to 30 days.
 */
export const scheduledMax = 10_000
/** Most of one publisher, so that none takes all places. */
export const scheduledOfOneMax = scheduledMax / 2

/** The reason why a broadcast cannot start at a time; undefined: it can. */
export const startError = (text: string, now: number): string | undefined => {
  const millis = millisOf(text)
  if (millis === undefined) return "expected a time of RFC 3339"
  if (millis > now + aheadMillisMax) return `expected a time of at most ${aheadDaysMax} days ahead`
  return millis < now - pastMillisMax ? "the time was more than an hour ago" : undefined
}

/** The start that a broadcast waits for which was stored at `storedAt`; undefined: none. */
export const laterStart = (
  header: (name: string) => string | undefined,
  storedAt: number
): { readonly at: string } | undefined => {
  const at = header(startHeader)
  return at !== undefined && (millisOf(at) ?? 0) > storedAt ? { at } : undefined
}
