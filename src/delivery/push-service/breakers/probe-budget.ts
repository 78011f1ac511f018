// The probe budget of a credentials breaker: probes pass at growing intervals, of different users
// first, so that one user's broken subscriptions cannot hide a healthy one. Pure: callers give the
// time.
import { makeRoom } from "#basics/bounded.ts"

/** The interval widens by its first value with each so many probes. */
const probesPerStep = 100
const probesAtOnce = 3
/** Waits of a user's next probe double up to this multiple of `openMillis`. */
const userWaitMax = 15
/** Users whose probes were refused; the oldest are dropped beyond this. */
const usersMax = 10_000

/** `openMillis`: the longest wait of a push, and ten times the longest interval. */
export class ProbeBudget {
  readonly #openMillis: number
  readonly #gapMillisMax: number
  readonly #users = new Map<string, { readonly waitMillis: number; readonly until: number }>()
  #stepMillis: number
  #probes = 0
  #nextAt = 0
  /** The last time given to a push to come back, so that pushes come one after the other. */
  #slotAt = 0
  /** When a push to a user without a refused probe was last told to wait. */
  #untriedAt = Number.NEGATIVE_INFINITY

  constructor(openMillis: number) {
    this.#openMillis = openMillis
    this.#gapMillisMax = Math.max(1, Math.round(openMillis / 10))
    this.#stepMillis = this.#gapMillisMax
  }

  /**
   * Forgets earlier probes. The next one may pass after one interval: at first a 60th of
   * `openMillis`, or, when `isOneByOne`, a 600th; never more than a tenth.
   */
  start(isOneByOne: boolean, now: number): void {
    this.#users.clear()
    this.#stepMillis = Math.max(1, Math.round(this.#openMillis / (isOneByOne ? 600 : 60)))
    this.#probes = 0
    this.#nextAt = now + (1 + probesAtOnce) * this.#gap()
    this.#slotAt = this.#nextAt
    this.#untriedAt = Number.NEGATIVE_INFINITY
  }

  /** Widens the intervals: a refusal concerned our credentials. */
  slowDown(): void {
    this.#stepMillis = Math.max(1, Math.round(this.#openMillis / 60))
  }

  /**
   * Undefined: send this push as a probe. Else the time to come back, at most `openMillis` from
   * now.
   */
  admit(user: string, now: number): number | undefined {
    this.#clamp(now)
    const tried = this.#users.get(user)
    if (tried !== undefined) {
      const until = Math.min(tried.until, now + this.#openMillis)
      if (until > now) return until
      if (now - this.#untriedAt < 2 * this.#openMillis) return now + this.#openMillis
    }
    // Pushes come back a little early or late, so a few probes may follow each other at once.
    if (now >= this.#nextAt - probesAtOnce * this.#gap()) {
      this.#probes += 1
      this.#nextAt = Math.max(this.#nextAt, now) + this.#gap()
      return undefined
    }
    if (tried === undefined) this.#untriedAt = now
    return this.#slot(now)
  }

  /** Notes that a push to this user was refused. */
  refused(user: string, now: number): void {
    const last = this.#users.get(user)
    // Another push of the same moment was refused already.
    if (last !== undefined && now < last.until) return
    const waitMillis = Math.min(
      last === undefined ? this.#openMillis : 2 * last.waitMillis,
      userWaitMax * this.#openMillis
    )
    this.#users.delete(user)
    makeRoom(this.#users, usersMax)
    this.#users.set(user, { waitMillis, until: now + waitMillis })
  }

  #gap(): number {
    const widened = this.#stepMillis * (1 + this.#probes / probesPerStep)
    return Math.min(Math.round(widened), this.#gapMillisMax)
  }

  /** A clock set back must not make a wait longer than its longest. */
  #clamp(now: number): void {
    this.#nextAt = Math.min(this.#nextAt, now + (1 + probesAtOnce) * this.#gapMillisMax)
    this.#slotAt = Math.min(this.#slotAt, now + this.#openMillis)
    this.#untriedAt = Math.min(this.#untriedAt, now)
  }

  #slot(now: number): number {
    const next = Math.max(this.#slotAt, this.#nextAt) + this.#gap()
    this.#slotAt = Math.min(next, now + this.#openMillis)
    return this.#slotAt
  }
}
