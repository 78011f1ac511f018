// What is kept for each of the push services, within bounds: the least used is forgotten first, so that nothing learned about one in use is
// lost because somebody made up a thousand names.

export interface LruCache<A> {
  /** What is kept under a name; made now if nothing is. */
  readonly of: (name: string, make: () => A) => A
  readonly all: () => Iterable<A>
}

/** Keeps at most `max`, and hands what it forgets to `forget`. Who was used last matters only beyond half of that: with the default allow-list there are a handful. */
export const makeLruCache = <A>(
  max: number,
  forget: (forgotten: A) => void = () => {}
): LruCache<A> => {
  const kept = new Map<string, A>()
  return {
    of: (name, make) => {
      const known = kept.get(name)
      if (known !== undefined) {
        if (kept.size > max / 2) {
          kept.delete(name)
          kept.set(name, known)
        }
        return known
      }
      if (kept.size >= max) {
        const [oldest, forgotten] = kept.entries().next().value!
        kept.delete(oldest)
        forget(forgotten)
      }
      const made = make()
      kept.set(name, made)
      return made
    },
    all: () => kept.values()
  }
}
