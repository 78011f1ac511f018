// An LRU cache: at most `max` values by name; the least recently used one is dropped first. So
// made-up names cannot drop the value of a name in use.
import { makeRoom } from "./bounded.ts"

export interface LruCache<A> {
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
