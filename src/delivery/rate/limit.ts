// The pushes of one broadcast with a rate in this process: those that wait for a turn, and the
// turns that are reserved for them. Pure: callers give the time, by the monotonic clock.
import { intervalOf, type LimitedRef, type Reserved, unusedMillisMax } from "./reserve.ts"

/** Turns of so many milliseconds are reserved at once, one at least. */
const reservedMillis = 200

/** Lets a push go on. */
type Go = () => void

export class Limit {
  readonly job: LimitedRef
  /** Pushes that wait: retries, and pushes that lost their turn, go first. */
  readonly #early: Array<Go> = []
  readonly #others: Array<Go> = []
  /** Times of reserved turns, in order: those to come, and those that nobody has used yet. */
  #coming: Array<number> = []
  #unused: Array<number> = []
  /** Pushes that may still go on, one for each turn that came. */
  #credits = 0
  /** Pushes that went on, and are not sent yet. */
  #inside = 0
  /** No turns are reserved before this time. */
  reserveAt = 0
  isReserving = false
  /** When the next retry that finds no place is to come again. */
  #retryAt = 0
  /** When something of it waited last. */
  usedAt = 0

  constructor(job: LimitedRef) {
    this.job = job
  }

  get earlyCount(): number {
    return this.#early.length
  }

  get isIdle(): boolean {
    return this.#early.length + this.#others.length + this.#inside === 0
  }

  /** Returns a function that takes the push out of the queue. */
  wait(go: Go, isEarly: boolean): () => void {
    const queue = isEarly ? this.#early : this.#others
    queue.push(go)
    return () => {
      const place = queue.indexOf(go)
      if (place >= 0) queue.splice(place, 1)
    }
  }

  /** Lets pushes go on whose turns have come. Returns how many more turns are needed. */
  advance(now: number): number {
    while (this.#coming.length > 0 && this.#coming[0]! <= now) {
      this.#unused.push(this.#coming.shift()!)
      this.#credits += 1
    }
    this.#dropOld(now)
    this.#credits = Math.min(this.#credits, this.#unused.length)
    // A push service that is slow lets few pushes out: then no more go into its queue.
    // A push runs within this loop, and waits again if its turn is lost by then. Without a turn the
    // loop would let it go on without end: no socket is served, and responses seem to be missing.
    while (this.#credits > 0 && this.#unused.length > 0 && this.#inside < this.job.rate) {
      if (!this.#goOn()) break
      this.#credits -= 1
    }
    const waiting = this.#early.length + this.#others.length + this.#inside
    return Math.min(
      waiting - this.#coming.length - this.#unused.length,
      Math.max(1, Math.floor(reservedMillis / intervalOf(this.job.rate)))
    )
  }

  /** A push goes on that needs no turn. */
  enter(): void {
    this.#inside += 1
  }

  /** Lets all pushes go on: no turn is needed any more. */
  open(): void {
    while (this.#goOn());
  }

  add({ count, first }: Reserved): void {
    const interval = intervalOf(this.job.rate)
    for (let i = 0; i < count; i++) this.#coming.push(first + i * interval)
  }

  /** The time of the next turn, if one is reserved. */
  get next(): number {
    return this.#coming[0] ?? Number.POSITIVE_INFINITY
  }

  /** Takes a turn for a push that is sent now. Undefined: there is none. */
  take(now: number): number | undefined {
    this.#dropOld(now)
    const turn = this.#unused.shift()
    if (turn !== undefined) this.#inside -= 1
    return turn
  }

  /** A push came to its end without a turn. */
  leave(): void {
    this.#inside -= 1
    this.#credits += 1
  }

  /** Nothing was sent with a turn. */
  giveBack(turn: number): void {
    this.#inside += 1
    this.#unused.unshift(turn)
  }

  /** Returns in how many milliseconds a retry is to come again that finds no place now. */
  postpone(now: number): number {
    this.#retryAt = Math.max(now, this.#retryAt) + intervalOf(this.job.rate)
    return Math.max(1_000, Math.ceil(this.#retryAt - now))
  }

  #dropOld(now: number): void {
    const since = now - unusedMillisMax(this.job.rate)
    while (this.#unused.length > 0 && this.#unused[0]! < since) this.#unused.shift()
  }

  #goOn(): boolean {
    const go = this.#early.shift() ?? this.#others.shift()
    if (go === undefined) return false
    this.#inside += 1
    go()
    return true
  }
}
