// Values that can be read or made again, within a share of the memory of all caches.
import type { Share } from "./cache-memory.ts"

/**
 * When the memory is full, one in 16 new values replaces older ones. A broadcast uses each value
 * once, in the same order: with an LRU cache each would be dropped just before its next use.
 */
const replacedOneIn = 16

interface Kept<V> {
  readonly value: V
  readonly bytes: number
}

export class ReadMemory<V> {
  readonly #kept = new Map<string, Kept<V>>()
  readonly #share: Share
  /** Values that found the memory full. */
  #unplaced = 0

  constructor(share: Share) {
    this.#share = share
    share.join(() => this.clear())
  }

  find(key: string): V | undefined {
    const kept = this.#kept.get(key)
    if (kept !== undefined) this.#share.touch()
    return kept?.value
  }

  /** Keeps a value of this many bytes, unless the memory is full. */
  place(key: string, value: V, bytes: number): void {
    this.#share.touch()
    this.drop(key)
    if (bytes > this.#share.bytesMax) return
    if (!this.#fits(bytes) && ++this.#unplaced % replacedOneIn !== 0) return
    for (const oldest of this.#kept.keys()) {
      if (this.#fits(bytes)) break
      this.drop(oldest)
    }
    this.#kept.set(key, { value, bytes })
    this.#share.bytes += bytes
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
}
