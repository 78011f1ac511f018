// One budget of bytes for the caches of a process. Each cache has a fixed share of it.
import * as Context from "effect/Context"
import { cacheBytesMax } from "#config"

/** The share of each cache, in sixteenths of the budget. */
const sixteenths = {
  /** Public keys that are ready for encryption: making one ready is a sixth of a push's cost. */
  "public-keys": 8,
  /** The lists of subscriptions that delivery reads, as text. */
  subscriptions: 4,
  /** The registered users of shards, as text. */
  registrations: 1,
  /** Entries that the projector has changed or may change next. */
  projector: 2,
  /** Entries that the tally has changed or may change next. */
  tally: 1
}

export type CacheName = keyof typeof sixteenths

/** The memory of one cache, or of several that divide it among themselves. */
export class Share {
  readonly bytesMax: number
  bytes = 0
  readonly #holders: Array<() => void> = []
  #usedAt = performance.now()

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Adds a cache. `clear` drops all of its entries that may be dropped. */
  join(clear: () => void): void {
    this.#holders.push(clear)
  }

  get holders(): number {
    return this.#holders.length
  }

  /** Notes that a cache was used. */
  touch(): void {
    this.#usedAt = performance.now()
  }

  /** Empties the caches if none was used for this time. Returns whether anything was dropped. */
  shrink(unusedMillis: number): boolean {
    const before = this.bytes
    if (before === 0 || performance.now() - this.#usedAt < unusedMillis) return false
    for (const clear of this.#holders) clear()
    return this.bytes < before
  }
}

export class CacheMemory {
  readonly #bytesMax: number
  readonly #shares = new Map<CacheName, Share>()

  /** `bytesMax`: the most that all caches may hold together. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns an empty share. It replaces a former one of the name, whose caches are gone. */
  share(name: CacheName): Share {
    const share = new Share((this.#bytesMax * sixteenths[name]) / 16)
    this.#shares.set(name, share)
    return share
  }

  /** Empties the caches that were not used for this time. Returns whether any had something. */
  shrink(unusedMillis: number): boolean {
    let isDropped = false
    for (const share of this.#shares.values()) if (share.shrink(unusedMillis)) isDropped = true
    return isDropped
  }

  get bytes(): number {
    return cacheNames.reduce((sum, name) => sum + this.bytesOf(name), 0)
  }

  bytesOf(name: CacheName): number {
    return this.#shares.get(name)?.bytes ?? 0
  }
}

export const cacheNames = Object.keys(sixteenths) as ReadonlyArray<CacheName>

/** The memory of the caches of this process. A verb of the command line has the default. */
export const Caches: Context.Reference<CacheMemory> = Context.Reference<CacheMemory>(
  "bellcast/memory/Caches",
  { defaultValue: () => new CacheMemory(cacheBytesMax) }
)
