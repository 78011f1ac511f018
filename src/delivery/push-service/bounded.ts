// Sets and maps with a bound: the oldest entry is dropped first.

/** Adds `value`; drops the oldest one beyond `max`. */
export const addBounded = <A>(set: Set<A>, value: A, max: number): void => {
  if (set.size >= max && !set.has(value)) set.delete(set.values().next().value!)
  set.add(value)
}
