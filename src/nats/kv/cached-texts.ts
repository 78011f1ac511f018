// The texts that a read cache has in memory, by the key or wildcard that they were read with.
import type { Share } from "#memory/cache-memory.ts"
import { MemoryCache } from "#memory/cache-memory.ts"

/** Added to the characters of each text: its key, and their places in a map. */
const entryBytes = 250

/** Marks a text that is being read. A change of one of its keys removes the mark. */
export class Loading {}

/** The key and every wildcard that matches the key. */
const filtersOver = (key: string): ReadonlyArray<string> => {
  const filters = [key]
  for (let dot = key.indexOf("."); dot >= 0; dot = key.indexOf(".", dot + 1))
    filters.push(`${key.slice(0, dot)}.>`)
  return filters
}

export class CachedTexts {
  readonly #texts: MemoryCache<string>
  readonly #loading = new Map<string, Loading>()
  /** Bytes of the last text that was made: others are about as large. */
  #lastBytes = entryBytes

  constructor(share: Share) {
    this.#texts = new MemoryCache(share)
  }

  find(filter: string): string | undefined {
    return this.#texts.get(filter)
  }

  begin(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters) this.#loading.set(filter, loading)
  }

  cancel(filters: ReadonlyArray<string>, loading: Loading): void {
    for (const filter of filters)
      if (this.#loading.get(filter) === loading) this.#loading.delete(filter)
  }

  /** Stores the JSON of what was read, unless a key changed meanwhile or the memory is full. */
  place(filter: string, value: unknown, loading: Loading): void {
    if (this.#loading.get(filter) !== loading) return
    this.#loading.delete(filter)
    this.#texts.setMade(filter, this.#lastBytes, () => {
      const text = JSON.stringify(value)
      this.#lastBytes = text.length + entryBytes
      return { value: text, bytes: this.#lastBytes }
    })
  }

  /** Drops every text that has the key. */
  invalidate(key: string): void {
    for (const filter of filtersOver(key)) {
      this.#texts.drop(filter)
      this.#loading.delete(filter)
    }
  }

  clear(): void {
    this.#texts.clear()
    this.#loading.clear()
  }
}
