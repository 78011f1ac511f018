// How maps and sets with a bound make room: the oldest entry is dropped first.

interface Entries<K> {
  readonly size: number
  readonly keys: () => Iterable<K>
  readonly delete: (key: K) => boolean
}

/**
 * Drops the oldest entries, in the order of insertion, until one more fits below `max`. `dropped`
 * is called with each key before its entry is dropped.
 */
export const makeRoom = <K>(
  entries: Entries<K>,
  max: number,
  dropped: (key: K) => void = () => {}
): void => {
  if (entries.size < max) return
  for (const oldest of entries.keys()) {
    if (entries.size < max) return
    dropped(oldest)
    entries.delete(oldest)
  }
}

/** Adds `value`; drops the oldest one beyond `max`. */
export const addBounded = <A>(set: Set<A>, value: A, max: number): void => {
  if (!set.has(value)) makeRoom(set, max)
  set.add(value)
}
