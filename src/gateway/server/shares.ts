// Amounts that clients hold of something bounded, such as connections or bytes of request bodies.

export interface Shares {
  /** Gives `amount` to `account`, or returns false when that is more than may be held. */
  readonly take: (account: string, amount: number) => boolean
  readonly give: (account: string, amount: number) => void
  /** What all accounts hold together. */
  readonly total: () => number
}

/** At most `max` per account, and `maxInAll` for all. Accounts that hold nothing take no memory. */
export const makeShares = (max: number, maxInAll = Number.POSITIVE_INFINITY): Shares => {
  const held = new Map<string, number>()
  let total = 0
  return {
    take: (account, amount) => {
      const next = (held.get(account) ?? 0) + amount
      if (next > max || total + amount > maxInAll) return false
      held.set(account, next)
      total += amount
      return true
    },
    give: (account, amount) => {
      const left = (held.get(account) ?? 0) - amount
      total -= amount
      if (left > 0) held.set(account, left)
      else held.delete(account)
    },
    total: () => total
  }
}
