// A rate per key: so many at once, and as many again spread over a window. Pure, but for its memory.

export interface Rate {
  /**
   * Counts one for a key at a time in milliseconds. Returns 0, or for how many milliseconds the
   * next is not allowed; then nothing is counted.
   */
  readonly take: (key: string, now: number) => number
  /** Keys in memory. */
  readonly size: () => number
}

/**
 * Allows `max` in each window and key (GCRA): one number for a key, and who is refused knows when
 * the next is allowed. More than `keysMax` keys push the one out that was counted longest ago.
 */
export const makeRate = (max: number, windowMillis: number, keysMax: number): Rate => {
  const intervalMillis = windowMillis / max
  /** When all that was counted for a key would have been due, one an interval. */
  const dueAt = new Map<string, number>()

  const makeRoom = (now: number) => {
    if (dueAt.size < keysMax) return
    for (const [key, due] of dueAt) if (due <= now) dueAt.delete(key)
    for (const key of dueAt.keys()) {
      if (dueAt.size < keysMax) break
      dueAt.delete(key)
    }
  }

  const take = (key: string, now: number): number => {
    const due = Math.max(now, dueAt.get(key) ?? now)
    const waitMillis = due - now - (windowMillis - intervalMillis)
    // Sums of fractions: a millionth of a millisecond too early is not early.
    if (waitMillis > 1e-6) return Math.max(1, waitMillis)
    dueAt.delete(key)
    makeRoom(now)
    dueAt.set(key, due + intervalMillis)
    return 0
  }

  return { take, size: () => dueAt.size }
}
