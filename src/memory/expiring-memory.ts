// Values that expire, within a share of the memory of all caches. Older ones make room for new
// ones, those first that were not used since the last sweeps.
import type { Share } from "./cache-memory.ts"
import { ReadMemory } from "./read-memory.ts"

export class ExpiringMemory<V> {
  readonly #memory: ReadMemory<{ readonly value: V; readonly until: number }>

  constructor(share: Share) {
    this.#memory = new ReadMemory(share, 1)
  }

  /** The value of a key, unless it expired before `now`. Times are milliseconds of one clock. */
  get(key: string, now: number): V | undefined {
    const found = this.#memory.find(key)
    if (found === undefined || found.until > now) return found?.value
    this.#memory.drop(key)
    return undefined
  }

  /** Keeps a value of this many bytes until a time. A later `get` does not extend it. */
  set(key: string, value: V, until: number, bytes: number): void {
    this.#memory.place(key, { value, until }, bytes)
  }
}
