// Dates in the headers of a push service. Pure.

// RFC 9110 section 5.6.7: the usual form and two obsolete ones. Date.parse alone accepts nearly any
// text.
const forms = [
  /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^\w{6,9}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^\w{3} \w{3} [\d ]\d \d\d:\d\d:\d\d \d{4}$/
]

/** Milliseconds since the epoch; undefined: no date of RFC 9110. */
export const parsedHttpDate = (value: string | undefined): number | undefined => {
  const text = value?.trim() ?? ""
  if (!forms.some((form) => form.test(text))) return undefined
  const date = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`)
  return Number.isNaN(date) ? undefined : date
}

/** A smaller difference is that of the way, or of two clocks that are well kept. */
const wrongMillisMin = 60_000

/**
 * Returns by how many milliseconds the clock of a push service is ahead of ours at `now`, as its
 * header Date says; negative: behind. 0: no more than a minute, or no such header.
 */
export const clockAhead = (date: string | undefined, now: number): number => {
  const ahead = (parsedHttpDate(date) ?? now) - now
  return Math.abs(ahead) > wrongMillisMin ? ahead : 0
}
