// How many pushes to one push service may be under way, learned from its 429s as TCP learns from loss (RFC 5681): halve the window when it
// throttles us, widen it by one for each window of pushes that it took. One throttled subscription is its own affair; several at a time mean
// us. A lane stops only while a Retry-After says so, or when it is throttled though it sends one push at a time. Pure: it knows the time
// only from its callers.

/** So many different subscriptions throttled within a minute are the lane's trouble. */
const throttledMin = 5
const throttledMillis = 60_000
/** A longer wait may be meant for single devices (their quotas run for hours); after this the service is asked again. */
const closedMillisMax = 15 * 60_000
/** Limits are counted by the minute (Chrome: 1000 messages): a window that grew with every answer would be back at its limit in two seconds. */
const widenMillis = 1_000

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
  /** Notes a push that was taken; true when the window is whole again with it. */
  readonly accepted: (now: number) => boolean
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
export const makePacing = (windowMax: number, closedMillis: number): Pacing => {
  let window = windowMax
  let taken = 0
  let until = 0
  let narrowedAt = Number.NEGATIVE_INFINITY
  let widenedAt = Number.NEGATIVE_INFINITY
  /** When each was throttled last, and for how long it was asked to wait. Holds fewer than {@link throttledMin}. */
  const recent = new Map<string, { readonly at: number; readonly waitMillis: number }>()

  const waitOf = (retryAfterMillis: number) =>
    Math.min(Math.max(1_000, retryAfterMillis), closedMillisMax)

  const narrow = (to: number, waitMillis: number, now: number) => {
    window = Math.min(window, to)
    taken = 0
    narrowedAt = now
    widenedAt = now
    recent.clear()
    if (waitMillis > 0) until = Math.max(until, now + waitMillis)
  }

  return {
    get window() {
      return window
    },
    get isSlowed() {
      return window < windowMax
    },
    closedUntil: (now) => {
      // A clock set back makes no wait longer than the longest.
      until = Math.min(until, now + closedMillisMax)
      return now < until ? until : undefined
    },
    accepted: (now) => {
      if (window === windowMax) return false
      taken += 1
      if (taken < window || now - widenedAt < widenMillis) return false
      window += 1
      taken = 0
      widenedAt = now
      return window === windowMax
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
      const wait = asked === 0 && window === 1 ? waitOf(closedMillis) : asked
      narrow(Math.max(1, Math.floor(window / 2)), wait, now)
      return { window, closedMillis: wait }
    },
    told: (told, now) => {
      if (told.window !== undefined) narrow(Math.max(1, told.window), 0, now)
      if (told.closedMillis > 0)
        until = Math.max(until, now + Math.min(told.closedMillis, closedMillisMax))
    }
  }
}
