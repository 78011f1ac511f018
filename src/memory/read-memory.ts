// Values that can be read or made again, within a share of the memory of all caches.
import type { Share } from "./cache-memory.ts"

/**
 * When the memory is full, one in 16 new values replaces older ones. A broadcast uses each value
 * once, in the same order: with an LRU cache each would be dropped just before its next use.
 */
const replacedOneInDefault = 16

interface Kept<V> {
  readonly value: V
  readonly bytes: number
  /** Sweeps of the share when the value was used last. */
  readonly usedIn: number
}

export class ReadMemory<V> {
  /** In the order of `usedIn`. */
  readonly #kept = new Map<string, Kept<V>>()
  readonly #share: Share
  readonly #replacedOneIn: number
  /** Values that found the memory full. */
  #unplaced = 0

  /** `replacedOneIn`: 1 where the newest values are those that are needed next. */
  constructor(share: Share, replacedOneIn = replacedOneInDefault) {
    this.#share = share
    this.#replacedOneIn = replacedOneIn
    share.join((since) => this.#dropUnused(since))
  }

  find(key: string): V | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    const { sweeps } = this.#share
    if (kept.usedIn !== sweeps) {
      this.#kept.delete(key)
      this.#kept.set(key, { ...kept, usedIn: sweeps })
    }
    return kept.value
  }

  /** Keeps a value of this many bytes, unless the memory is full. */
  place(key: string, value: V, bytes: number): void {
    this.placeMade(key, bytes, () => ({ value, bytes }))
  }

  /** As `place`, of a value that is made only if it is kept. `bytesAbout`: its expected bytes. */
  placeMade(key: string, bytesAbout: number, make: () => Omit<Kept<V>, "usedIn">): void {
    this.drop(key)
    if (!this.#fits(bytesAbout) && ++this.#unplaced % this.#replacedOneIn !== 0) return
    const made = make()
    if (made.bytes > this.#share.bytesMax) return
    for (const oldest of this.#kept.keys()) {
      if (this.#fits(made.bytes)) break
      this.drop(oldest)
    }
    this.#kept.set(key, { ...made, usedIn: this.#share.sweeps })
    this.#share.bytes += made.bytes
  }

  drop(key: string): void {
    const kept = this.#kept.get(key)
    if (kept === undefined) return
    this.#kept.delete(key)
    this.#share.bytes -= kept.bytes
  }

  clear(): void {
    for (const key of [...this.#kept.keys()]) this.drop(key)
  }

  #fits(bytes: number): boolean {
    return this.#share.bytes + bytes <= this.#share.bytesMax
  }

  #dropUnused(since: number): void {
    for (const [key, { usedIn }] of this.#kept) {
      if (usedIn >= since) return
      this.drop(key)
    }
  }
}
