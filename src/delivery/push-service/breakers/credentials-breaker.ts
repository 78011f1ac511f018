// The credentials breaker of one push service and VAPID key: when our credentials are refused,
// pushes wait, and only probes of different users pass until one is accepted. A fault of ours, or
// of the push service, must never cost a subscriber. Pure: callers give the time.
import { addBounded } from "#basics/bounded.ts"
import type { RefusalReason } from "#domain/reason.ts"
import { CircuitBreaker, type CircuitState } from "./circuit-breaker.ts"
import { ProbeBudget } from "./probe-budget.ts"

/**
 * A 2xx this recent proves that our key is good. A refusal may then concern one subscription alone.
 */
const provenMillis = 10 * 60_000
/**
 * With such proof, this many different users refused in a row, without a 2xx between them, open the
 * breaker after all. One user may have many broken subscriptions.
 */
const usersInRowMax = 20
/** Subscriptions known to be refused alone; the oldest are dropped beyond this. */
const loneMax = 1_000

/** Users with an accepted push; the oldest are dropped beyond this. */
const provenUsersMax = 10_000
/** Made-up users are of today: a subscription of this age counts as genuine. */
const trustedMillis = 24 * 60 * 60_000

/** What the breaker needs of a push. */
interface CheckedPush {
  readonly subscription: string
  readonly user: string
  /** When its subscription was stored, in milliseconds of the monotonic clock. */
  readonly storedAt: number
}

export class CredentialsBreaker {
  readonly #openMillis: number
  readonly #circuit = new CircuitBreaker()
  readonly #budget: ProbeBudget
  #acceptedAt = Number.NEGATIVE_INFINITY
  readonly #provenUsers = new Set<string>()
  readonly #usersInRow = new Set<string>()
  readonly #inRow = new Set<string>()
  /**
   * Refused while our key was proven. Later refusals, without a proof, must not open the breaker.
   */
  readonly #lone = new Set<string>()

  /** `openMillis`: how long it stays open after the last refusal. */
  constructor(openMillis: number) {
    this.#openMillis = openMillis
    this.#budget = new ProbeBudget(openMillis)
  }

  stateAt(now: number): CircuitState {
    return this.#circuit.stateAt(now)
  }

  /** For how many milliseconds it stays open; 0: it is closed, or any push may be a probe. */
  openMillis(now: number): number {
    return Math.max(0, (this.#circuit.openUntil ?? now) - now)
  }

  /** Whether the credentials may be tried at all: not open. */
  passes(now: number): boolean {
    return this.#circuit.stateAt(now) !== "open"
  }

  /** Whether there was a 2xx within the last ten minutes. */
  proven(now: number): boolean {
    return now - this.#acceptedAt < provenMillis
  }

  /**
   * Undefined: send the push; while the breaker is not closed, as a probe. Else the time to come
   * back.
   */
  admit({ storedAt, user }: CheckedPush, now: number): number | undefined {
    if (this.#circuit.stateAt(now) === "closed") return undefined
    const isTrusted = this.#provenUsers.has(user) || now - storedAt >= trustedMillis
    return this.#budget.admit(user, isTrusted, now)
  }

  /** Notes a 2xx. Returns whether it closes the breaker. */
  accepted({ subscription, user }: CheckedPush, now: number): boolean {
    addBounded(this.#provenUsers, user, provenUsersMax)
    if (this.#lone.size > 0) this.#lone.delete(subscription)
    return this.#close(now)
  }

  /**
   * Notes a refusal. Returns "lone" when it concerns this subscription alone. Else the time to come
   * back, and whether the breaker opens with it.
   */
  refused(
    push: CheckedPush,
    reason: RefusalReason,
    now: number
  ): "lone" | { readonly until: number; readonly opens: boolean } {
    const opens = this.#circuit.stateAt(now) === "closed"
    if (this.#isLone(push, now)) {
      if (!opens) this.#budget.refused(push.user, now)
      return "lone"
    }
    this.#endRow()
    if (opens) this.#budget.start(reason === "key-mismatch", now)
    else if (reason === "credentials") this.#budget.slowDown()
    this.#budget.refused(push.user, now)
    this.#circuit.open(this.#openMillis, now)
    return { until: now + this.#openMillis, opens }
  }

  /**
   * Merges another worker's state: open for `millis`, or, with 0, closed by a 2xx. Returns whether
   * ours changes.
   */
  merge(millis: number, now: number): boolean {
    if (millis === 0) return this.#close(now)
    const state = this.#circuit.stateAt(now)
    const wait = Math.min(millis, this.#openMillis)
    if (state === "open" && this.#circuit.openUntil! >= now + wait) return false
    this.#endRow()
    if (state === "closed") this.#budget.start(false, now)
    this.#circuit.open(wait, now)
    return state !== "open"
  }

  #close(now: number): boolean {
    this.#acceptedAt = now
    if (this.#inRow.size > 0) this.#endRow()
    return this.#circuit.close()
  }

  #endRow(): void {
    this.#usersInRow.clear()
    this.#inRow.clear()
  }

  #isLone({ subscription, user }: CheckedPush, now: number): boolean {
    if (this.#lone.has(subscription)) return true
    if (this.#circuit.stateAt(now) !== "closed" || !this.proven(now)) return false
    this.#inRow.add(subscription)
    if (this.#usersInRow.add(user).size >= usersInRowMax) {
      // So many in a row were not refused alone.
      for (const each of this.#inRow) this.#lone.delete(each)
      return false
    }
    addBounded(this.#lone, subscription, loneMax)
    return true
  }
}
