// When a broadcast starts that does not start as soon as it is accepted: at a time, or some seconds
// after NATS stored it. Pure.
import * as Schema from "effect/Schema"
import { millisOf } from "./timestamp.ts"

/** Header of a broadcast that starts later: a time of RFC 3339, as `at` in a request's body. */
export const startHeader = "Bellcast-Start-At"

/**
 * Header of a broadcast that starts later: seconds, as `delay_seconds` in a request's body. They
 * count from when NATS stored the broadcast: a slow client or a repeated request moves no start.
 */
export const delayHeader = "Bellcast-Delay-Seconds"

const aheadDaysMax = 30
/** The longest time between the request that gives a broadcast its start, and that start. */
const aheadMillisMax = aheadDaysMax * 24 * 60 * 60_000
/**
 * A time that has just passed means at once: the clock of the publisher may be behind, and a
 * request is repeated for as long as its Idempotency-Key counts.
 */
const pastMillisMax = 60 * 60_000

/** The reason why a broadcast cannot start at a time; undefined: it can. */
export const startError = (text: string, now: number): string | undefined => {
  const millis = millisOf(text)
  if (millis === undefined) return "expected a time of RFC 3339"
  if (millis > now + aheadMillisMax) return `expected a time of at most ${aheadDaysMax} days ahead`
  return millis < now - pastMillisMax ? "the time was more than an hour ago" : undefined
}

/** An hour: to take a broadcast back takes seconds, and everything else is a time. */
const delaySecondsMax = 3_600

export const DelaySeconds = Schema.Int.pipe(
  Schema.check(Schema.isBetween({ minimum: 1, maximum: delaySecondsMax }))
)

/** Undefined: the text is no value of the header. */
const delaySecondsOf = (text: string): number | undefined =>
  /^[1-9]\d{0,3}$/.test(text) && Number(text) <= delaySecondsMax ? Number(text) : undefined

type Header = (name: string) => string | undefined

/** The fault of a message's delay, as its headers say it; undefined: none. */
export const delayError = (header: Header): string | undefined => {
  const text = header(delayHeader)
  if (text === undefined) return undefined
  if (delaySecondsOf(text) === undefined)
    return `${delayHeader} must be a whole number of seconds from 1 to ${delaySecondsMax}`
  return header(startHeader) === undefined
    ? undefined
    : `${delayHeader} and ${startHeader} exclude each other`
}

/** The start that a broadcast waits for which was stored at `storedAt`; undefined: none. */
export const laterStart = (
  header: Header,
  storedAt: number
): { readonly at: string } | undefined => {
  const at = header(startHeader)
  if (at !== undefined) return (millisOf(at) ?? 0) > storedAt ? { at } : undefined
  const seconds = delaySecondsOf(header(delayHeader) ?? "")
  return seconds === undefined
    ? undefined
    : { at: new Date(storedAt + seconds * 1000).toISOString() }
}

/**
 * Most broadcasts that wait for their start. The planner and each worker and gateway keep them in
 * memory, at up to 1 KB each, for up to 30 days.
 */
export const scheduledMax = 10_000
/** Most of one publisher, so that none takes all places. */
export const scheduledOfOneMax = scheduledMax / 2
