// How many pushes to one push service may be under way: its send window. The others wait in its
// queue. The window grows while pushes wait for it, and this process has time for more. It follows
// 429s as TCP follows loss (RFC 5681): halve the window when the push service throttles us, widen
// it by a little for each window of pushes that it took. One throttled user changes nothing;
// several at a time do, unless nearly all other pushes are accepted. Sending stops only while a
// Retry-After says so, or when the push service throttles us though one push at a time is sent.
import { performance } from "node:perf_hooks"
import * as Effect from "effect/Effect"
import { FairSemaphore } from "#clock/fair-semaphore.ts"

/** Enough for 5,000 pushes a second to a push service that responds within 10 ms. */
const windowStart = 64
/** The window triples with each round trip while pushes wait: two round trips from 64 to 512. */
const growth = 2
/**
 * So many different users throttled within a minute narrow the window, if their share of the last
 * responses is as large, too: push services throttle single devices for hours.
 */
const throttledMin = 5
const throttledShareMin = 1 / 20
/** The share is that of about so many responses, of which the last ones count most. */
const responses = 64
const throttledMillis = 60_000
/**
 * Longer waits may be meant for single devices, whose quotas run for hours. So try again after
 * this.
 */
const closedMillisMax = 15 * 60_000
/**
 * Between two steps. Push services count by the minute (Chrome: 1000 messages); a window that
 * widened with every response would be back at its limit in two seconds.
 */
const widenMillis = 1_000
/**
 * One step of a widening window: a 32nd of it, so that a window of 256 needs no longer than one of
 * 32.
 */
const widenShare = 1 / 32

export interface Narrowed {
  readonly window: number
  /** Nothing may be sent for so long; 0: the smaller window is enough. */
  readonly closedMillis: number
}

const clampedWait = (retryAfterMillis: number) =>
  Math.min(Math.max(1_000, retryAfterMillis), closedMillisMax)

/** Callers give the time, by the monotonic clock. */
export class SendWindow {
  readonly #windowMax: number
  readonly #part: (whole: number) => number
  readonly #closedMillis: number
  /** Pushes that the push service's 429s allow at once. */
  #limit: number
  /** Pushes that were needed at once so far. */
  #grown: number
  /** The window that a narrowed one widens to; from there it grows with demand again. */
  #whole: number
  #taken = 0
  #closedUntil = 0
  #narrowedAt = Number.NEGATIVE_INFINITY
  #widenedAt = Number.NEGATIVE_INFINITY
  /** By user: the last 429 and Retry-After. Of a minute, and of {@link responses} at most. */
  readonly #recent = new Map<string, { readonly at: number; readonly waitMillis: number }>()

  /** The share of 429s among the last responses. */
  #throttledShare = 0

  /**
   * `closedMillis`: how long sending stops at a window of 1, where the push service names no time.
   * `part`: the part of a bound that this process has beside those that send with it.
   */
  constructor(windowMax: number, closedMillis: number, part = (whole: number) => whole) {
    this.#windowMax = windowMax
    this.#closedMillis = closedMillis
    this.#part = part
    this.#limit = windowMax
    this.#grown = Math.min(part(windowStart), windowMax)
    this.#whole = this.#grown
  }

  /** Pushes that may be under way at once. */
  get window(): number {
    return Math.min(this.#limit, this.#grown, this.#part(this.#windowMax))
  }

  /** Whether the push service allows fewer than are needed. */
  get isSlowed(): boolean {
    return this.#limit < this.#grown
  }

  /** Returns when pushes may be sent again; undefined: now. */
  closedUntil(now: number): number | undefined {
    return now < this.#closedUntil ? this.#closedUntil : undefined
  }

  /**
   * Notes an accepted push. Returns whether the window is whole again with it. `wantsMore`: other
   * pushes wait, and this process has time for them.
   */
  accepted(now: number, wantsMore: boolean): boolean {
    this.#throttledShare *= 1 - 1 / responses
    const grownMax = Math.min(this.#limit, this.#part(this.#windowMax))
    if (wantsMore && this.#grown < grownMax) this.#grown = Math.min(grownMax, this.#grown + growth)
    if (this.#limit === this.#windowMax) return false
    this.#taken += 1
    if (this.#taken < this.window || now - this.#widenedAt < widenMillis) return false
    this.#limit += Math.max(1, Math.floor(this.#limit * widenShare))
    this.#taken = 0
    this.#widenedAt = now
    if (this.#limit < this.#whole) return false
    this.#limit = this.#windowMax
    return true
  }

  /** Notes a throttled push, sent at `sentAt`. Returns the new window when this push narrows it. */
  throttled(
    user: string,
    sentAt: number,
    now: number,
    retryAfterMillis: number | undefined
  ): Narrowed | undefined {
    this.#throttledShare += (1 - this.#throttledShare) / responses
    if (sentAt <= this.#narrowedAt) {
      this.#throttledBefore(now, retryAfterMillis)
      return undefined
    }
    for (const [each, { at }] of this.#recent)
      if (now - at >= throttledMillis || this.#recent.size >= responses) this.#recent.delete(each)
    const waitMillis = retryAfterMillis === undefined ? 0 : clampedWait(retryAfterMillis)
    this.#recent.set(user, { at: now, waitMillis })
    if (this.#recent.size < throttledMin || this.#throttledShare < throttledShareMin)
      return undefined
    const asked = Math.max(...[...this.#recent.values()].map((each) => each.waitMillis))
    const wait = asked === 0 && this.window === 1 ? clampedWait(this.#closedMillis) : asked
    this.#narrow(Math.max(1, Math.floor(this.window / 2)), wait, now)
    return { window: this.#limit, closedMillis: wait }
  }

  /** Merges another worker's state: its narrowed window, if any, and how long to send nothing. */
  merge(
    theirs: { readonly window?: number | undefined; readonly closedMillis: number },
    now: number
  ): void {
    if (theirs.window !== undefined) this.#narrow(Math.max(1, theirs.window), 0, now)
    if (theirs.closedMillis > 0)
      this.#closedUntil = Math.max(
        this.#closedUntil,
        now + Math.min(theirs.closedMillis, closedMillisMax)
      )
  }

  /** The push was sent before the window was narrowed: only a longer Retry-After counts. */
  #throttledBefore(now: number, retryAfterMillis: number | undefined): void {
    if (now < this.#closedUntil && retryAfterMillis !== undefined)
      this.#closedUntil = Math.max(this.#closedUntil, now + clampedWait(retryAfterMillis))
  }

  #narrow(to: number, waitMillis: number, now: number): void {
    this.#limit = Math.min(this.#limit, to)
    this.#whole = Math.max(this.#grown, this.#limit)
    this.#taken = 0
    this.#narrowedAt = now
    this.#widenedAt = now
    this.#recent.clear()
    if (waitMillis > 0) this.#closedUntil = Math.max(this.#closedUntil, now + waitMillis)
  }
}

/** Delay before a push that did not fit is tried again: at least 1 s, at most 60 s. */
const fullMillisMin = 1_000
const fullMillisMax = 60_000

/**
 * Returns that delay: a quarter of the broadcast's age. An older broadcast has waited longer
 * already.
 */
export const fullMillis = (ageMillis: number): number =>
  Math.min(Math.max(fullMillisMin, ageMillis / 4), fullMillisMax)

/** The longest queue of a slowed push service. */
const queueMax = 64

/**
 * The send queue: at most the window of pushes is under way, the others wait here. The queue of a
 * slowed push service is short, so that pushes of the same shard to other push services do not wait
 * behind it. A push that does not fit waits in WORK. `max`: the widest window. `windowNow` returns
 * how many pushes may be under way, `isSlowed` whether the push service allows fewer than are
 * needed.
 */
export const makeQueue = (max: number, windowNow: () => number, isSlowed: () => boolean) => {
  const slots = new FairSemaphore<number>(max)
  let window = max
  /** Pushes that wait or are under way. */
  let inside = 0

  const resized = Effect.suspend(() => {
    const wanted = Math.max(1, windowNow())
    if (window === wanted) return Effect.void
    window = wanted
    return slots.resize(window)
  })

  return {
    isFull: (): boolean => isSlowed() && inside >= windowNow() + Math.min(queueMax, max),

    /** Whether pushes wait for others to end. */
    isWaiting: (): boolean => inside > window,

    /** Runs `effect` when it and its broadcast have their turn. It has a place until its end. */
    withPlace: <A, E, R>(broadcast: number, effect: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        inside += 1
        const leave = Effect.suspend(() => {
          inside -= 1
          return resized
        })
        return Effect.andThen(resized, slots.withPermit(broadcast, effect)).pipe(
          Effect.ensuring(leave)
        )
      })
  }
}

const measuredMillis = 50
const busyShareMax = 0.95

/**
 * Returns a function that tells whether the event loop was idle for 5 % of the last 50 ms or more.
 * In a process that is always busy, more pushes under way bring no speed, only more connections and
 * memory.
 */
export const makeHeadroom = (): (() => boolean) => {
  let last = performance.eventLoopUtilization()
  let measuredAt = performance.now()
  let hasHeadroom = true
  return () => {
    const now = performance.now()
    if (now - measuredAt < measuredMillis) return hasHeadroom
    const current = performance.eventLoopUtilization()
    hasHeadroom = performance.eventLoopUtilization(current, last).utilization < busyShareMax
    last = current
    measuredAt = now
    return hasHeadroom
  }
}
