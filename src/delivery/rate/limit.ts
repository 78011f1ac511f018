// The rate of one broadcast: how many pushes of it are in a process, which of them wait for a turn,
// and the turns that are reserved for them. One entry of the bucket `cache` says up to when turns
// are given. A process moves that time on by its own turns, over the revision that it read. So no
// two processes give the same turn, and no process has to live for others to send.
import * as Effect from "effect/Effect"
import { moment, monotonicOf } from "#clock/clocks.ts"
import type { BroadcastRef } from "#domain/job.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { keys } from "#streams/buckets.ts"

/** Turns of so many milliseconds are reserved at once, one at least. */
const reservedMillis = 200

/** No turn is reserved so long before it: then the clock of NATS was set back since. */
const earlyMillisMax = 3_000
/** Longer than any turn stays unused. */
const ttl = { ttlSeconds: 60 }

/** A shard is left after this time, so that those of other broadcasts have theirs. */
const shardMillisMax = 30_000
/** The fewest pushes of a shard that wait for their turns at once. */
const pushesMin = 8

/** A job of a broadcast with a rate. */
export type LimitedRef = BroadcastRef & { readonly rate: number }

/** Milliseconds between two turns. */
export const intervalOf = (rate: number): number => 1_000 / rate

/**
 * A turn is lost when it is not used for so long. A service that was frozen, or had to wait for a
 * push service, sends faster afterwards by these turns: in 10 s by 3 %, or by one push.
 */
export const unusedMillisMax = (rate: number): number => Math.max(300, intervalOf(rate))

/** Turns with an interval between them. */
interface Reserved {
  readonly count: number
  /** The time of the first one, by the monotonic clock. */
  readonly first: number
}

/**
 * Returns after how many milliseconds a shard is left, and how many of its pushes are under way or
 * wait for their turns at once: those of a second.
 */
export const shareOf = (rate: number | undefined, concurrency: number) =>
  rate === undefined
    ? { millis: Number.POSITIVE_INFINITY, concurrency }
    : { millis: shardMillisMax, concurrency: Math.min(concurrency, Math.max(pushesMin, rate)) }

/** Lets a push go on. */
type Go = () => void

/** The pushes and turns in this process. Callers give the time, by the monotonic clock. */
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

/**
 * Reserves `count` turns; none if the first one comes later than in `leadMillis`. Fails with
 * AppendConflict if another process reserved some meanwhile.
 */
export const reserve = Effect.fnUntraced(function* (
  buckets: Buckets["Service"],
  { broadcast, rate }: LimitedRef,
  count: number,
  leadMillis: number
) {
  const key = keys.turns(broadcast)
  const entry = yield* buckets.get("cache", key)
  const now = yield* moment
  const until = entry?.value.until ?? now.at
  // After a rest the first turn is now. One of long ago would be lost before it is used.
  const goesOn = until >= now.at - unusedMillisMax(rate) && until <= now.at + earlyMillisMax
  const from = goesOn ? until : now.at
  const reserved: Reserved = { count, first: monotonicOf(now, from) }
  if (from > now.at + leadMillis) return { ...reserved, count: 0 }
  const next = from + count * intervalOf(rate)
  yield* buckets.put("cache", key, { v: 1, until: next }, entry?.revision ?? 0, ttl)
  return reserved
})
