// A rate limit per key: a burst, and as many again spread over a window. Pure apart from its
// memory.
import { makeRoom } from "./bounded.ts"

export interface Rate {
  /**
   * Counts `cost` (1 unless given; more than `max` counts as `max`) for a key at a time in
   * milliseconds. Returns 0, or the milliseconds until it is allowed; then nothing is counted.
   */
  readonly take: (key: string, now: number, cost?: number) => number
  /** Like `take`, but counts nothing. */
  readonly wait: (key: string, now: number, cost?: number) => number
  /** Takes back what `take` counted for a key. */
  readonly giveBack: (key: string, cost?: number) => void
  /** The number of keys in memory. */
  readonly size: () => number
}

/** When all keys are in use, so many of them are added before the next look for idle ones. */
const lookShare = 1 / 16

/**
 * Allows `max` per key and window (generic cell rate algorithm): stores one number per key, and
 * knows when the next is allowed. Beyond `keysMax` keys the oldest is dropped. `max` 0: no limit.
 */
export const makeRate = (max: number, windowMillis: number, keysMax: number): Rate => {
  const intervalMillis = windowMillis / max
  /** The time until which each key's counts are used up, at one count per interval. */
  const dueAt = new Map<string, number>()

  /** Keys that were added since the last look at all of them. */
  let addedSince = 0

  /** Looks at all keys for every few new ones only: 20,000 of them take 0.1 ms. */
  const dropIdle = (now: number) => {
    addedSince += 1
    if (dueAt.size < keysMax || addedSince < keysMax * lookShare) return
    addedSince = 0
    for (const [key, due] of dueAt) if (due <= now) dueAt.delete(key)
  }

  const dueOf = (key: string, now: number): number => Math.max(now, dueAt.get(key) ?? now)

  const millisOf = (cost: number): number => Math.min(cost, max) * intervalMillis

  const wait = (key: string, now: number, cost = 1): number => {
    if (max === 0) return 0
    const waitMillis = dueOf(key, now) - now - (windowMillis - millisOf(cost))
    // Tolerate the rounding of fractions.
    return waitMillis > 1e-6 ? Math.max(1, waitMillis) : 0
  }

  const take = (key: string, now: number, cost = 1): number => {
    const waitMillis = wait(key, now, cost)
    if (waitMillis > 0 || max === 0) return waitMillis
    const due = dueOf(key, now)
    if (!dueAt.delete(key)) dropIdle(now)
    makeRoom(dueAt, keysMax)
    dueAt.set(key, due + millisOf(cost))
    return 0
  }

  const giveBack = (key: string, cost = 1) => {
    const due = dueAt.get(key)
    if (due !== undefined) dueAt.set(key, due - millisOf(cost))
  }

  return { take, wait, giveBack, size: () => dueAt.size }
}
