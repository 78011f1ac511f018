// How fast a push service may be sent to, learned from its 429s. One throttled subscription is its own affair; several at a time mean us.
// Pure: it knows the time only from its callers.

/** So many different subscriptions throttled within a minute close the lane. */
const throttledMin = 5
const windowMillis = 60_000
/** A longer wait may be meant for single devices (their quotas run for hours); after this the service is asked again. */
const closedMillisMax = 15 * 60_000

export interface Pacing {
  /** When pushes may be sent again; undefined: now. */
  readonly closedUntil: (now: number) => number | undefined
  /** Notes a throttled push; true when it is the one that closes the lane. */
  readonly throttled: (subscription: string, now: number, retryAfterMillis: number | undefined) => boolean
}

/** `closedMillis`: for how long, where the push service does not say. */
export const makePacing = (closedMillis: number): Pacing => {
  let until = 0
  /** When each was throttled last. Holds fewer than {@link throttledMin}. */
  const recent = new Map<string, number>()

  const waitOf = (retryAfterMillis: number | undefined) => Math.min(Math.max(1_000, retryAfterMillis ?? closedMillis), closedMillisMax)

  return {
    closedUntil: (now) => (now < until ? until : undefined),
    throttled: (subscription, now, retryAfterMillis) => {
      const asked = now + waitOf(retryAfterMillis)
      if (now < until) {
        // Sent before the lane closed; the longest wait asked for counts.
        until = Math.max(until, asked)
        return false
      }
      for (const [each, at] of recent) if (now - at >= windowMillis) recent.delete(each)
      recent.set(subscription, now)
      if (recent.size < throttledMin) return false
      recent.clear()
      until = asked
      return true
    }
  }
}
