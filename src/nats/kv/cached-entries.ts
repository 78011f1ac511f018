// The entries that a write-back cache has in memory, with their weight in bytes.
import type { Share } from "#memory/cache-memory.ts"

/** Bytes of V8's heap for each character of JSON: measured, for lists and registrations. */
const heapBytes = 3
/** Added for each entry: the key and its places in two maps. */
const entryBytes = 200

export interface CachedEntry<V> {
  /** Undefined: the bucket has no such key, or shall have none. */
  value: V | undefined
  /** 0: the bucket has no such key. */
  revision: number
  /** Characters of the JSON, as it was read or written last. */
  textBytes: number
  /** Sweeps of the share when the entry was used last. */
  usedIn: number
}

const weightOf = (textBytes: number): number => heapBytes * textBytes + entryBytes

/** Beyond their share of memory the oldest entries are dropped, and read again when needed. */
export class CachedEntries<V> {
  readonly #entries = new Map<string, CachedEntry<V>>()
  readonly #share: Share
  #bytes = 0
  /** Whether keys were loaded for changes that are not flushed yet. */
  #isInUse = false
  /** The highest revision of an entry that was dropped, or 0. */
  droppedRevision = 0

  /** `mustStay`: whether the entry of a key may not be dropped although it is unused. */
  constructor(share: Share, mustStay: (key: string) => boolean) {
    this.#share = share
    share.join((since) => {
      if (this.#isInUse) return
      for (const [key, entry] of this.#entries)
        if (entry.usedIn < since && !mustStay(key)) this.drop(key, entry)
    })
  }

  /** From now to the next `evict`, no entry is dropped. */
  begin(): void {
    this.#isInUse = true
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  find(key: string): CachedEntry<V> | undefined {
    const entry = this.#entries.get(key)
    if (entry !== undefined) entry.usedIn = this.#share.sweeps
    return entry
  }

  /** The entry of a key that was loaded. */
  loaded(key: string): CachedEntry<V> {
    return this.find(key)!
  }

  add(key: string, value: V | undefined, revision: number, textBytes: number): CachedEntry<V> {
    const entry: CachedEntry<V> = { value, revision, textBytes, usedIn: this.#share.sweeps }
    this.#entries.set(key, entry)
    this.#grow(weightOf(textBytes))
    return entry
  }

  weigh(entry: CachedEntry<V>, textBytes: number): void {
    this.#grow(weightOf(textBytes) - weightOf(entry.textBytes))
    entry.textBytes = textBytes
  }

  drop(key: string, entry: CachedEntry<V>): void {
    if (!this.#entries.delete(key)) return
    this.#grow(-weightOf(entry.textBytes))
    this.droppedRevision = Math.max(this.droppedRevision, entry.revision)
  }

  /**
   * Drops the oldest entries, except those to keep, until the others fit. Not `makeRoom` of
   * basics/: the bound is in bytes, and entries that are not stored yet must stay.
   */
  evict(keep: (key: string) => boolean, dropped: (key: string) => void): void {
    this.#isInUse = false
    for (const [key, entry] of this.#entries) {
      if (!this.#isOver()) break
      if (keep(key)) continue
      this.drop(key, entry)
      dropped(key)
    }
  }

  /** Whether the shared memory is used up, and this cache has more than its equal share. */
  #isOver(): boolean {
    const { bytes, bytesMax, holders } = this.#share
    return bytes > bytesMax && this.#bytes > bytesMax / holders
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    this.#share.bytes += bytes
  }
}
