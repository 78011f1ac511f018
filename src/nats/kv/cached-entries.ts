// The entries that a write-back cache has in memory, with their weight in bytes.

/**
 * Entries of one cache. Beyond this the oldest are dropped, and read again when they are needed.
 */
const entriesMax = 20_000
/** Added to the JSON of each entry: the key and its places in two maps. */
const entryBytes = 200

/**
 * The memory that several caches share, in bytes of JSON (exact for each entry as it was read or
 * written last). V8's heap needs three times as much or more, depending on the JSON.
 */
export interface Memory {
  readonly bytesMax: number
  bytes: number
  caches: number
}

export const makeMemory = (bytesMax: number): Memory => ({ bytesMax, bytes: 0, caches: 0 })

export interface CachedEntry<V> {
  /** Undefined: the bucket has no such key, or shall have none. */
  value: V | undefined
  /** 0: the bucket has no such key. */
  revision: number
  bytes: number
}

export class CachedEntries<V> {
  readonly #entries = new Map<string, CachedEntry<V>>()
  readonly #memory: Memory
  #bytes = 0

  constructor(memory: Memory) {
    this.#memory = memory
    memory.caches += 1
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  find(key: string): CachedEntry<V> | undefined {
    return this.#entries.get(key)
  }

  /** The entry of a key that was loaded. */
  loaded(key: string): CachedEntry<V> {
    return this.#entries.get(key)!
  }

  add(key: string, value: V | undefined, revision: number, textBytes: number): CachedEntry<V> {
    const entry: CachedEntry<V> = { value, revision, bytes: 0 }
    this.#entries.set(key, entry)
    this.weigh(entry, textBytes)
    return entry
  }

  weigh(entry: CachedEntry<V>, textBytes: number): void {
    const weight = textBytes + entryBytes
    this.#grow(weight - entry.bytes)
    entry.bytes = weight
  }

  drop(key: string, entry: CachedEntry<V>): void {
    if (this.#entries.delete(key)) this.#grow(-entry.bytes)
  }

  /**
   * Drops the oldest entries, except those to keep, until the others fit. Not `makeRoom` of
   * basics/: the bound is in bytes, and entries that are not stored yet must stay.
   */
  evict(keep: (key: string) => boolean, dropped: (key: string) => void): void {
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size <= entriesMax && !this.#isOver()) break
      if (keep(key)) continue
      this.drop(key, entry)
      dropped(key)
    }
  }

  /** Whether the shared memory is used up, and this cache has more than its equal share. */
  #isOver(): boolean {
    const { bytes, bytesMax, caches } = this.#memory
    return bytes > bytesMax && this.#bytes > bytesMax / caches
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    this.#memory.bytes += bytes
  }
}
