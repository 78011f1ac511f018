// The probe budget of a credentials breaker: probes pass at growing intervals, of different users
// first, so that one user's broken subscriptions cannot hide a healthy one. Trusted users have
// intervals of their own, so that made-up ones cannot hide a genuine one. Pure: callers give the
// time, by the monotonic clock.
import { addBounded, makeRoom } from "#basics/bounded.ts"

/** The interval widens by its first value with each so many probes. */
const probesPerStep = 100
const probesAtOnce = 3
/** Waits of a user's next probe double up to this multiple of `openMillis`. */
const userWaitMax = 15
/** Users whose probes were refused, and users that wait for their first; the oldest are dropped. */
const usersMax = 10_000
/** Within so many times `openMillis`, all users that wait for their first probe get one. */
const untriedWaitMax = 5

/** Intervals between probes, and the users that wait for their first one. */
class Pace {
  readonly #openMillis: number
  readonly #gapMillisMax: number
  readonly #waiting = new Set<string>()
  /** The most that have waited at once. */
  #most = 0
  #stepMillis: number
  #probes = 0
  #nextAt: number
  /** The last time given to a push to come back, so that pushes come one after the other. */
  #slotAt: number

  constructor(openMillis: number, stepMillis: number, now: number) {
    this.#openMillis = openMillis
    this.#gapMillisMax = Math.max(1, Math.round(openMillis / 10))
    this.#stepMillis = stepMillis
    this.#nextAt = now + (1 + probesAtOnce) * this.#gap(false)
    this.#slotAt = this.#nextAt
  }

  slowDown(stepMillis: number): void {
    this.#stepMillis = stepMillis
  }

  /** Undefined: the probe passes. Else the time to come back. `isFirst`: of its user. */
  admit(user: string, isFirst: boolean, now: number): number | undefined {
    // Pushes come back a little early or late, so a few probes may follow each other at once.
    if (now >= this.#nextAt - probesAtOnce * this.#gap(isFirst)) {
      this.#probes += 1
      this.#nextAt = Math.max(this.#nextAt, now) + this.#gap(isFirst)
      if (this.#waiting.delete(user) && this.#waiting.size === 0) this.#most = 0
      return undefined
    }
    if (isFirst) {
      addBounded(this.#waiting, user, usersMax)
      this.#most = Math.max(this.#most, this.#waiting.size)
    }
    const next = Math.max(this.#slotAt, this.#nextAt) + this.#gap(isFirst)
    this.#slotAt = Math.min(next, now + this.#openMillis)
    return this.#slotAt
  }

  #gap(isFirst: boolean): number {
    const widened = Math.round(this.#stepMillis * (1 + this.#probes / probesPerStep))
    const gap = Math.min(widened, this.#gapMillisMax)
    if (!isFirst || this.#most === 0) return gap
    return Math.min(gap, Math.max(1, Math.floor((untriedWaitMax * this.#openMillis) / this.#most)))
  }
}

/** `openMillis`: the longest wait of a push, and ten times the longest interval. */
export class ProbeBudget {
  readonly #openMillis: number
  readonly #refused = new Map<string, { readonly waitMillis: number; readonly until: number }>()
  #trusted: Pace
  #others: Pace
  /** When a push to a user without a refused probe was last deferred. */
  #untriedAt = Number.NEGATIVE_INFINITY

  constructor(openMillis: number) {
    this.#openMillis = openMillis
    this.#trusted = new Pace(openMillis, this.#stepMillis(false), 0)
    this.#others = this.#trusted
  }

  /**
   * Forgets earlier probes. The next one may pass after one interval: at first a 60th of
   * `openMillis`, or, when `isOneByOne`, a 600th; never more than a tenth.
   */
  start(isOneByOne: boolean, now: number): void {
    const stepMillis = this.#stepMillis(isOneByOne)
    this.#refused.clear()
    this.#trusted = new Pace(this.#openMillis, stepMillis, now)
    this.#others = new Pace(this.#openMillis, stepMillis, now)
    this.#untriedAt = Number.NEGATIVE_INFINITY
  }

  /** Widens the intervals: a refusal concerned our credentials. */
  slowDown(): void {
    for (const pace of [this.#trusted, this.#others]) pace.slowDown(this.#stepMillis(false))
  }

  /**
   * Undefined: send this push as a probe. Else the time to come back, at most `openMillis` from
   * now. `isTrusted`: the user is hardly made up.
   */
  admit(user: string, isTrusted: boolean, now: number): number | undefined {
    const refused = this.#refused.get(user)
    if (refused !== undefined) {
      const until = Math.min(refused.until, now + this.#openMillis)
      if (until > now) return until
      if (now - this.#untriedAt < 2 * this.#openMillis) return now + this.#openMillis
    }
    const isFirst = refused === undefined
    const pace = isTrusted && isFirst ? this.#trusted : this.#others
    const until = pace.admit(user, isFirst, now)
    if (until !== undefined && isFirst) this.#untriedAt = now
    return until
  }

  /** Notes that a push to this user was refused. */
  refused(user: string, now: number): void {
    const last = this.#refused.get(user)
    // Another push of the same moment was refused already.
    if (last !== undefined && now < last.until) return
    const waitMillis = Math.min(
      last === undefined ? this.#openMillis : 2 * last.waitMillis,
      userWaitMax * this.#openMillis
    )
    this.#refused.delete(user)
    makeRoom(this.#refused, usersMax)
    this.#refused.set(user, { waitMillis, until: now + waitMillis })
  }

  #stepMillis(isOneByOne: boolean): number {
    return Math.max(1, Math.round(this.#openMillis / (isOneByOne ? 600 : 60)))
  }
}
