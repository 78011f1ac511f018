// Limits of one client: so many requests in a window of time (`Rate`), and so much of a resource
// at a time (`Shares`), such as connections or bytes of bodies.
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
 * Allows a burst of `max` per key, and as many again spread over each window (generic cell rate
 * algorithm): stores one number per key, and knows when the next is allowed. Beyond `keysMax` keys
 * the oldest is dropped. `max` 0: no limit.
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

export interface Shares {
  /** Counts `amount` for `account`. False when that exceeds a limit; then nothing is counted. */
  readonly take: (account: string, amount: number) => boolean
  /** Frees an amount that was taken. */
  readonly give: (account: string, amount: number) => void
  /** The amount of one account. */
  readonly of: (account: string) => number
  /** The amount of all accounts together. */
  readonly total: () => number
  /** The account that would have the largest amount if `account` took `amount` more. */
  readonly largest: (account: string, amount: number) => string
}

/** At most `max` per account, and `maxInAll` for all. Accounts without an amount take no memory. */
export const makeShares = (max: number, maxInAll = Number.POSITIVE_INFINITY): Shares => {
  const amounts = new Map<string, number>()
  let total = 0
  return {
    take: (account, amount) => {
      const next = (amounts.get(account) ?? 0) + amount
      if (next > max || total + amount > maxInAll) return false
      amounts.set(account, next)
      total += amount
      return true
    },
    give: (account, amount) => {
      const left = (amounts.get(account) ?? 0) - amount
      total -= amount
      if (left > 0) amounts.set(account, left)
      else amounts.delete(account)
    },
    of: (account) => amounts.get(account) ?? 0,
    total: () => total,
    largest: (account, amount) => {
      let [most, mostAmount] = [account, (amounts.get(account) ?? 0) + amount]
      for (const [other, taken] of amounts)
        if (taken > mostAmount) [most, mostAmount] = [other, taken]
      return most
    }
  }
}
