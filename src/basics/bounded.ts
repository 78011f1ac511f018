// Maps and sets with a bound on their entries: the oldest entry makes room for a new one. So names
// and tokens that others make up take no more memory than that. The caches with a bound in bytes
// are in memory/cache-memory.ts.

/**
 * An LRU cache: at most `max` values by key, of which the least recently used one is dropped first.
 * So made-up keys cannot drop the value of a key in use.
 *
 * Effect's `Cache` has a bound as well, but it measures lifetimes by the clock of the service,
 * which may be set back by hours, and tells nobody what it drops.
 */
export class LruCache<V> {
  readonly #max: number
  readonly #dropped: (value: V) => void
  readonly #entries = new Map<string, { readonly value: V; readonly until: number }>()

  /** `dropped` is called with each value that made room. */
  constructor(max: number, dropped: (value: V) => void = () => {}) {
    this.#max = max
    this.#dropped = dropped
  }

  /** The value of a key, unless it expired before `now`: milliseconds, by the clock of `until`. */
  get(key: string, now = Number.NEGATIVE_INFINITY): V | undefined {
    const found = this.#entries.get(key)
    if (found === undefined) return undefined
    if (found.until <= now) {
      this.#entries.delete(key)
      return undefined
    }
    // With fewer, the order does not matter yet: most push services have a handful of keys.
    if (this.#entries.size > this.#max / 2) {
      this.#entries.delete(key)
      this.#entries.set(key, found)
    }
    return found.value
  }

  /** Remembers a value until a time. A later `get` does not extend it. */
  set(key: string, value: V, until = Number.POSITIVE_INFINITY): void {
    this.#entries.delete(key)
    makeRoom(this.#entries, this.#max, (oldest) => this.#dropped(this.#entries.get(oldest)!.value))
    this.#entries.set(key, { value, until })
  }

  /** The value of a key; makes it if there is none. */
  of(key: string, make: () => V): V {
    const known = this.get(key)
    if (known !== undefined) return known
    const made = make()
    this.set(key, made)
    return made
  }

  all(): ReadonlyArray<V> {
    return [...this.#entries.values()].map(({ value }) => value)
  }
}

/** Adds `value`; drops the oldest one beyond `max`. */
export const addBounded = <A>(set: Set<A>, value: A, max: number): void => {
  if (!set.has(value)) makeRoom(set, max)
  set.add(value)
}

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
