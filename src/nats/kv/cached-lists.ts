// The lists that a read cache has in memory, by the key or wildcard that they were read with.

/**
 * When the memory is full, one in 16 new lists replaces older ones. A broadcast reads each list
 * once, in the same order: with an LRU cache each list would be dropped just before its next use.
 */
const replacedOneIn = 16

/** Marks a list that is being read. A change of one of its keys removes the mark. */
export class Loading {}

/** The key and every wildcard that matches the key. */
const filtersOver = (key: string): ReadonlyArray<string> => {
  const filters = [key]
  for (let dot = key.indexOf("."); dot >= 0; dot = key.indexOf(".", dot + 1))
    filters.push(`${key.slice(0, dot)}.>`)
  return filters
}

const weightOf = (list: ReadonlyArray<unknown>): number => Math.max(1, list.length)

export class CachedLists<A> {
  readonly #lists = new Map<string, ReadonlyArray<A> | Loading>()
  readonly #itemsMax: number
  #items = 0
  /** Lists that found the memory full. */
  #unplaced = 0

  constructor(itemsMax: number) {
    this.#itemsMax = itemsMax
  }

  /** Undefined: not in memory, or still being read. */
  find(filter: string): ReadonlyArray<A> | undefined {
    const list = this.#lists.get(filter)
    return list instanceof Loading ? undefined : (list as ReadonlyArray<A> | undefined)
  }

  begin(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters) this.#lists.set(filter, loading)
  }

  cancel(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters)
      if (this.#lists.get(filter) === loading) this.#lists.delete(filter)
  }

  /** Stores a list that was read, unless a key changed meanwhile or the memory is full. */
  place(filter: string, list: ReadonlyArray<A>, loading: Loading): void {
    if (this.#lists.get(filter) !== loading) return
    this.#lists.delete(filter)
    const weight = weightOf(list)
    if (!this.#fits(weight) && ++this.#unplaced % replacedOneIn !== 0) return
    for (const [oldest, each] of this.#lists) {
      if (this.#fits(weight)) break
      if (!(each instanceof Loading)) this.#drop(oldest)
    }
    if (!this.#fits(weight)) return
    this.#lists.set(filter, list)
    this.#items += weight
  }

  /** Drops every list that has the key. */
  invalidate(key: string): void {
    for (const filter of filtersOver(key)) this.#drop(filter)
  }

  clear(): void {
    this.#lists.clear()
    this.#items = 0
  }

  #fits(weight: number): boolean {
    return this.#items + weight <= this.#itemsMax
  }

  #drop(filter: string): void {
    const list = this.#lists.get(filter)
    if (list === undefined) return
    this.#lists.delete(filter)
    if (!(list instanceof Loading)) this.#items -= weightOf(list as ReadonlyArray<A>)
  }
}
