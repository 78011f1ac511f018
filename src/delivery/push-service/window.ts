// How many pushes to one push service may be under way. The window grows while pushes wait for it. It follows
// 429s as TCP follows loss (RFC 5681): halve the window when the push service throttles us, widen it by a
// little for each window of pushes that it took. One throttled subscription is its own affair; several at a
// time mean us. Sending stops only while a Retry-After says so, or when the push service throttles us though
// one push at a time is sent. Pure: it knows the time only from its callers.

/** Enough for 5,000 pushes a second to a push service that answers within 10 ms. */
const windowStart = 64
/** The window triples with each round trip while pushes wait: two round trips from 64 to 512. */
const growth = 2
/** So many different subscriptions throttled within a minute are the lane's trouble. */
const throttledMin = 5
const throttledMillis = 60_000
/** A longer wait may be meant for single devices (their quotas run for hours); after this the service is asked again. */
const closedMillisMax = 15 * 60_000
/** Limits are counted by the minute (Chrome: 1000 messages): a window that grew with every answer would be back at its limit in two seconds. */
const widenMillis = 1_000
/** One step of a widening window: a 32nd of it, so that a window of 256 needs no longer than one of 32. */
const widenShare = 1 / 32

export interface Narrowed {
  readonly window: number
  /** Nothing may be sent for so long; 0: the smaller window is enough. */
  readonly closedMillis: number
}

export interface Pacing {
  /** Pushes that may be under way at once. */
  readonly window: number
  /** Whether the window is smaller than it may be. */
  readonly isSlowed: boolean
  /** When pushes may be sent again; undefined: now. */
  readonly closedUntil: (now: number) => number | undefined
  /**
   * Notes a push that was taken; true when the window is whole again with it. `wantsMore`: others wait, and
   * this process has time for them.
   */
  readonly accepted: (now: number, wantsMore: boolean) => boolean
  /** Notes a push, sent at `sentAt`, that was throttled; what follows when it is the one that narrows the window. */
  readonly throttled: (
    subscription: string,
    sentAt: number,
    now: number,
    retryAfterMillis: number | undefined
  ) => Narrowed | undefined
  /** What another worker has learned: its window was narrowed, so ours is no wider; or, without a window, only for how long to stop. */
  readonly told: (
    told: { readonly window?: number; readonly closedMillis: number },
    now: number
  ) => void
}

/** `closedMillis`: for how long a lane with nothing left to halve stops, where the push service does not say. */
export const makeWindow = (windowMax: number, closedMillis: number): Pacing => {
  /** Pushes that its 429s allow at once. */
  let limit = windowMax
  /** Pushes that were needed at once so far. */
  let grown = Math.min(windowStart, windowMax)
  /** The window that a narrowed one widens to; from there it grows with demand again. */
  let whole = grown
  let taken = 0
  let until = 0
  let narrowedAt = Number.NEGATIVE_INFINITY
  let widenedAt = Number.NEGATIVE_INFINITY
  /** When each was throttled last, and for how long it was asked to wait. Holds fewer than {@link throttledMin}. */
  const recent = new Map<string, { readonly at: number; readonly waitMillis: number }>()

  const waitOf = (retryAfterMillis: number) =>
    Math.min(Math.max(1_000, retryAfterMillis), closedMillisMax)

  const windowNow = () => Math.min(limit, grown)

  const narrow = (to: number, waitMillis: number, now: number) => {
    limit = Math.min(limit, to)
    whole = Math.max(grown, limit)
    taken = 0
    narrowedAt = now
    widenedAt = now
    recent.clear()
    if (waitMillis > 0) until = Math.max(until, now + waitMillis)
  }

  return {
    get window() {
      return windowNow()
    },
    get isSlowed() {
      return limit < grown
    },
    closedUntil: (now) => {
      // A clock set back makes no wait longer than the longest.
      until = Math.min(until, now + closedMillisMax)
      return now < until ? until : undefined
    },
    accepted: (now, wantsMore) => {
      if (wantsMore && grown < limit) grown = Math.min(limit, grown + growth)
      if (limit === windowMax) return false
      taken += 1
      if (taken < windowNow() || now - widenedAt < widenMillis) return false
      limit += Math.max(1, Math.floor(limit * widenShare))
      taken = 0
      widenedAt = now
      if (limit < whole) return false
      limit = windowMax
      return true
    },
    throttled: (subscription, sentAt, now, retryAfterMillis) => {
      // Sent before the window was narrowed, and no news; but the longest wait asked for counts.
      if (sentAt <= narrowedAt) {
        if (now < until && retryAfterMillis !== undefined)
          until = Math.max(until, now + waitOf(retryAfterMillis))
        return undefined
      }
      for (const [each, { at }] of recent) if (now - at >= throttledMillis) recent.delete(each)
      recent.set(subscription, {
        at: now,
        waitMillis: retryAfterMillis === undefined ? 0 : waitOf(retryAfterMillis)
      })
      if (recent.size < throttledMin) return undefined
      const asked = Math.max(...[...recent.values()].map(({ waitMillis }) => waitMillis))
      const wait = asked === 0 && windowNow() === 1 ? waitOf(closedMillis) : asked
      narrow(Math.max(1, Math.floor(windowNow() / 2)), wait, now)
      return { window: limit, closedMillis: wait }
    },
    told: (told, now) => {
      if (told.window !== undefined) narrow(Math.max(1, told.window), 0, now)
      if (told.closedMillis > 0)
        until = Math.max(until, now + Math.min(told.closedMillis, closedMillisMax))
    }
  }
}
