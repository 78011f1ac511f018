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

// An LRU cache: at most `max` values by name; the least recently used one is dropped first. So
// made-up names cannot drop the value of a name in use.

interface LruCache<A> {
  /** Returns the value of a name; makes it if there is none. */
  readonly of: (name: string, make: () => A) => A
  readonly all: () => Iterable<A>
}

/**
 * `dropped` is called with each dropped value. The order of use is tracked only while the cache is
 * more than half full: with the default allow-list there are a handful of names.
 */
export const makeLruCache = <A>(
  max: number,
  dropped: (value: A) => void = () => {}
): LruCache<A> => {
  const values = new Map<string, A>()
  return {
    of: (name, make) => {
      const known = values.get(name)
      if (known !== undefined) {
        if (values.size > max / 2) {
          values.delete(name)
          values.set(name, known)
        }
        return known
      }
      makeRoom(values, max, (oldest) => dropped(values.get(oldest)!))
      const made = make()
      values.set(name, made)
      return made
    },
    all: () => values.values()
  }
}

// A bounded map of values that expire. The least recently used one is dropped first.

export interface ExpiringMap<A> {
  /** The value of a key, unless it expired before `now` (milliseconds). */
  readonly get: (key: string, now: number) => A | undefined
  /** Remembers a value until a time. A later `get` does not extend it. */
  readonly set: (key: string, value: A, until: number) => void
}

export const makeExpiringMap = <A>(max: number): ExpiringMap<A> => {
  const values = new Map<string, { readonly value: A; readonly until: number }>()
  return {
    get: (key, now) => {
      const found = values.get(key)
      if (found === undefined) return undefined
      values.delete(key)
      if (found.until <= now) return undefined
      values.set(key, found)
      return found.value
    },
    set: (key, value, until) => {
      values.delete(key)
      makeRoom(values, max)
      values.set(key, { value, until })
    }
  }
}
