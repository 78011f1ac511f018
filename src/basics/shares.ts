// Counts how much of a bounded resource each client uses, such as connections or bytes of bodies.

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
