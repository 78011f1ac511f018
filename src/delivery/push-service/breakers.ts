// The breakers of one push service. Each stops pushes for a while (open), then lets single probes
// through (half-open) until a response closes it. The connectivity breaker opens when no response
// comes, the credentials breaker when our credentials are refused. Pure: callers give the time, by
// the monotonic clock.
import { addBounded, makeRoom } from "#basics/bounded.ts"

/**
 * Different subscriptions without a response, in a row, that open the breaker. The same number of
 * pushes to fewer subscriptions only causes a warning.
 */
const failedInRowMax = 5

/**
 * After failed connections to several subscriptions in a row, pushes wait instead of using up their
 * attempts. Our own network may be the cause, so other workers are not told. Open `firstMillis`,
 * then twice as long with each failed probe, at most `maxMillis`.
 */
export class ConnectivityBreaker {
  readonly #firstMillis: number
  readonly #maxMillis: number
  readonly #circuit = new CircuitBreaker()
  readonly #failedInRow = new Set<string>()
  #pushesInRow = 0
  #millis: number
  #respondedAt = Number.NEGATIVE_INFINITY

  constructor(firstMillis: number, maxMillis: number) {
    this.#firstMillis = firstMillis
    this.#maxMillis = maxMillis
    this.#millis = firstMillis
  }

  stateAt(now: number): CircuitState {
    return this.#circuit.stateAt(now)
  }

  /** Undefined: a push may be sent; {@link probes} says that it is. Else the time to come back. */
  deferral(now: number): number | undefined {
    return this.#circuit.deferral(now)
  }

  /** Notes that a push is sent. Returns whether it is a probe, for which others wait. */
  probes(now: number): boolean {
    return this.#circuit.probes(now)
  }

  /** Notes that the last probe was not sent after all: the next push may be one. */
  giveBack(): void {
    this.#circuit.giveBack()
  }

  /** Notes a response of any status. Returns whether it ends the waiting, or a silence. */
  responded(now: number): boolean {
    this.#respondedAt = now
    if (this.#failedInRow.size > 0) this.#failedInRow.clear()
    this.#millis = this.#firstMillis
    const wasSilent = this.#pushesInRow >= failedInRowMax
    this.#pushesInRow = 0
    return this.#circuit.close() || wasSilent
  }

  /**
   * Notes that a push sent at `sentAt` got no response. "opens": the breaker opens with it.
   * "silent": a few subscriptions get no response, again and again.
   */
  failed(subscription: string, sentAt: number, now: number): "opens" | "silent" | undefined {
    const state = this.#circuit.stateAt(now)
    // Others got a response since then: one connection broke, with all the pushes on it.
    if (sentAt < this.#respondedAt) return undefined
    // The push was sent before the breaker opened, so its failure says nothing about now.
    if (state === "open") return undefined
    this.#pushesInRow += 1
    if (state === "closed" && this.#failedInRow.add(subscription).size < failedInRowMax)
      return this.#pushesInRow === failedInRowMax ? "silent" : undefined
    this.#failedInRow.clear()
    this.#circuit.open(Math.min(this.#millis, this.#maxMillis), now)
    this.#millis = Math.min(2 * this.#millis, this.#maxMillis)
    return state === "closed" ? "opens" : undefined
  }
}

/** Other pushes wait this long for a probe. If its response proves nothing, the next one probes. */
const probeMillisMin = 1_000

/** Open: nothing is sent, but for probes of refused credentials. Half-open: probes are sent. */
type CircuitState = "closed" | "half-open" | "open"

/** Open for a while, then half-open until it is closed or opened again. */
class CircuitBreaker {
  #openUntil: number | undefined
  #probeMillis = probeMillisMin
  #probedUntil = 0

  stateAt(now: number): CircuitState {
    const end = this.#openUntil
    return end === undefined ? "closed" : now < end ? "open" : "half-open"
  }

  /** Undefined: a push may be sent; {@link probes} says that it is. Else the time to come back. */
  deferral(now: number): number | undefined {
    const end = this.#openUntil
    if (end === undefined) return undefined
    if (now < end) return end
    return now < this.#probedUntil ? this.#probedUntil : undefined
  }

  /** Notes that a push is sent. Returns whether it is a probe, for which others wait. */
  probes(now: number): boolean {
    if (this.#openUntil === undefined) return false
    this.#probedUntil = now + this.#probeMillis
    return true
  }

  /** Notes that the last probe was not sent after all: the next push may be one. */
  giveBack(): void {
    this.#probedUntil = 0
  }

  open(millis: number, now: number): void {
    this.#openUntil = now + millis
    this.#probeMillis = Math.max(probeMillisMin, millis / 10)
    this.#probedUntil = 0
  }

  /** Returns whether it was not closed before. */
  close(): boolean {
    const closes = this.#openUntil !== undefined
    this.#openUntil = undefined
    return closes
  }

  /** Returns the time from which probes may pass; undefined while closed. */
  get openUntil(): number | undefined {
    return this.#openUntil
  }
}

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

/** The part of a push by which the breaker decides. */
interface CheckedPush {
  readonly subscription: string
  readonly user: string
}

/**
 * Of one VAPID key: when our credentials are refused, pushes wait, and only probes of different
 * users pass until one is accepted. A fault of ours, or of the push service, must never cost a
 * subscriber.
 */
export class CredentialsBreaker {
  readonly #openMillis: number
  readonly #circuit = new CircuitBreaker()
  #probes: ProbeTurns
  #acceptedAt = Number.NEGATIVE_INFINITY
  readonly #usersInRow = new Set<string>()
  readonly #inRow = new Set<string>()
  /**
   * Refused while our key was proven. Later refusals, without a proof, must not open the breaker.
   */
  readonly #lone = new Set<string>()

  /** `openMillis`: how long it stays open after the last refusal. */
  constructor(openMillis: number) {
    this.#openMillis = openMillis
    this.#probes = new ProbeTurns(openMillis, 0)
  }

  stateAt(now: number): CircuitState {
    return this.#circuit.stateAt(now)
  }

  /** For how many milliseconds it stays open; 0: it is closed, or any push may be a probe. */
  openMillis(now: number): number {
    return Math.max(0, (this.#circuit.openUntil ?? now) - now)
  }

  /** Whether there was a 2xx within the last ten minutes. */
  proven(now: number): boolean {
    return now - this.#acceptedAt < provenMillis
  }

  /**
   * Undefined: send the push; while the breaker is not closed, as a probe. Else the time to come
   * back.
   */
  admit({ user }: CheckedPush, now: number): number | undefined {
    if (this.#circuit.stateAt(now) === "closed") return undefined
    return this.#probes.admit(user, now)
  }

  /** Notes a 2xx. Returns whether it closes the breaker. */
  accepted({ subscription }: CheckedPush, now: number): boolean {
    if (this.#lone.size > 0) this.#lone.delete(subscription)
    return this.#close(now)
  }

  /**
   * Notes a refusal. Returns "lone" when it concerns this subscription alone. Else the time to come
   * back, and whether the breaker opens with it.
   */
  refused(
    push: CheckedPush,
    now: number
  ): "lone" | { readonly until: number; readonly opens: boolean } {
    const opens = this.#circuit.stateAt(now) === "closed"
    if (this.#isLone(push, now)) {
      if (!opens) this.#probes.refused(push.user, now)
      return "lone"
    }
    this.#endRow()
    if (opens) this.#probes = new ProbeTurns(this.#openMillis, now)
    this.#probes.refused(push.user, now)
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
    if (state === "closed") this.#probes = new ProbeTurns(this.#openMillis, now)
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

/** Between two probes: a thousand users have their turn within 36 s. */
const gapMillis = 36
/** A push that comes back so much later than its turn takes another one. */
const lapseMillis = 60_000
/**
 * Users that wait for their turn, and users whose probe was refused. Half of the turns are for
 * users without a refused probe; a push that gets no turn comes back later.
 */
const usersMax = 10_000
/** The wait after a refused probe doubles from `openMillis` up to this multiple of it. */
const waitMax = 15

/**
 * Each user that waits has one turn to probe, so that neither one user's many broken subscriptions
 * nor many made-up users hide a healthy one.
 */
class ProbeTurns {
  readonly #openMillis: number
  /** When the push of a user that waits may be sent. */
  readonly #turns = new Map<string, number>()
  #lastTurn: number
  readonly #refused = new Map<string, { readonly waitMillis: number; readonly until: number }>()

  /** `openMillis`: the longest time until a push comes back. */
  constructor(openMillis: number, now: number) {
    this.#openMillis = openMillis
    this.#lastTurn = now
  }

  /** Undefined: send this push as a probe. Else when to come back, within `openMillis`. */
  admit(user: string, now: number): number | undefined {
    const soon = now + this.#openMillis
    const { until = now } = this.#refused.get(user) ?? {}
    if (now < until) return Math.min(until, soon)
    const turn = this.#turnOf(user, now)
    if (turn === undefined) return soon
    if (now < turn) return Math.min(turn, soon)
    this.#turns.delete(user)
    return undefined
  }

  /** Notes that a push to this user was refused. */
  refused(user: string, now: number): void {
    const last = this.#refused.get(user)
    // Another push of the same moment was refused already.
    if (last !== undefined && now < last.until) return
    const doubled = last === undefined ? this.#openMillis : 2 * last.waitMillis
    const waitMillis = Math.min(doubled, waitMax * this.#openMillis)
    this.#refused.delete(user)
    makeRoom(this.#refused, usersMax)
    this.#refused.set(user, { waitMillis, until: now + waitMillis })
  }

  /** Undefined: too many wait. */
  #turnOf(user: string, now: number): number | undefined {
    for (const [each, turn] of this.#turns) {
      if (now - turn <= lapseMillis) break
      this.#turns.delete(each)
    }
    const known = this.#turns.get(user)
    const turnsMax = this.#refused.has(user) ? usersMax / 2 : usersMax
    if (known !== undefined || this.#turns.size >= turnsMax) return known
    this.#lastTurn = Math.max(now, this.#lastTurn + gapMillis)
    this.#turns.set(user, this.#lastTurn)
    return this.#lastTurn
  }
}
