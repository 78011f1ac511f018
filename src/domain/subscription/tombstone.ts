// Tombstones of removed subscriptions, from which clients learn of the removal. Pure.

/**
 * The entry of a removed subscription. A number is the time of the removal. A subscription that a
 * push service ended can be renewed: its entry has the hash of the secret.
 */
export type Tombstone =
  | number
  | { readonly lastModified: number; readonly isMoved: true }
  | { readonly lastModified: number; readonly renewal: string; readonly generation: number }

/** Beyond this the oldest tombstones are dropped, so that a list fits into one bucket value. */
export const tombstonesMax = 1_000

/** The timestamp of a tombstone. */
export const removedAt = (tombstone: Tombstone): number =>
  typeof tombstone === "number" ? tombstone : tombstone.lastModified

/** Drops the oldest beyond the bound. */
export const boundTombstones = (
  tombstones: Record<string, Tombstone>
): Record<string, Tombstone> => {
  const entries = Object.entries(tombstones)
  if (entries.length <= tombstonesMax) return tombstones
  return Object.fromEntries(
    entries.sort(([, a], [, b]) => removedAt(a) - removedAt(b)).slice(-tombstonesMax)
  )
}
