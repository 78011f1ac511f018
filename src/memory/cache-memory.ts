// One budget of bytes for the caches of a process, of which each has a fixed share; and a cache of
// values within a share. Bounded by bytes, because values differ a thousandfold in size: Effect's
// `Cache` counts entries. A cache of small entries of one size is an LruCache (basics/bounded.ts).
import * as Context from "effect/Context"
import { cacheBytesMax } from "#config"

/** The share of each cache, in parts of 64 of the budget. */
const parts = {
  /** Public keys that are ready for encryption: making one ready is a sixth of a push's cost. */
  "public-keys": 28,
  /** The lists of subscriptions that delivery reads, as text. */
  subscriptions: 15,
  /** The registered users of shards, as text. */
  registrations: 4,
  /** The payloads of broadcasts, padded, and to whom they go. */
  payloads: 1,
  /** Messages of broadcasts that this process has planned and is about to send. */
  log: 1,
  /** The pushes that a redrive may send again: as many as there are, until a minute after it. */
  redrives: 0,
  /** Entries that the projector has changed or may change next. */
  projector: 7,
  /** Entries that the tally has changed or may change next. */
  tally: 3,
  /** Verified tokens. */
  logins: 4,
  /** Which channels somebody has joined. */
  channels: 1
}

type CacheName = keyof typeof parts

/** Sweeps after which an entry that was not used is dropped: a minute (see upkeep.ts). */
export const unusedSweeps = 4

/** The memory of one cache, or of several that divide it among themselves. */
export class Share {
  #bytesMax: number
  bytes = 0
  /** Calls of `dropUnused` so far. Each entry has the number at which it was used last. */
  sweeps = 0
  readonly #holders: Array<(since: number) => void> = []
  readonly #trims: Array<() => void> = []

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytesMax(): number {
    return this.#bytesMax
  }

  /** Drops what is too much then, but for entries of which the next change makes the room. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax
    for (const trim of this.#trims) trim()
  }

  /**
   * Adds a cache. `drop` drops the entries used last before a sweep, if they may be dropped; `trim`
   * the oldest, until the rest fits.
   */
  join(drop: (since: number) => void, trim?: () => void): void {
    this.#holders.push(drop)
    if (trim !== undefined) this.#trims.push(trim)
  }

  get holders(): number {
    return this.#holders.length
  }

  /** Drops the entries that were not used since `unusedSweeps` sweeps. */
  dropUnused(): void {
    this.sweeps += 1
    for (const drop of this.#holders) drop(this.sweeps - unusedSweeps)
  }
}

export class CacheMemory {
  #bytesMax: number
  readonly #shares = new Map<CacheName, Share>()

  /** `bytesMax`: the most that all caches may hold together. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns an empty share. It replaces a former one of the name, whose caches are gone. */
  share(name: CacheName): Share {
    const share = new Share(this.#bytesOf(name))
    this.#shares.set(name, share)
    return share
  }

  /** Changes the most that all caches may hold together. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax
    for (const [name, share] of this.#shares) share.resize(this.#bytesOf(name))
  }

  #bytesOf(name: CacheName): number {
    return (this.#bytesMax * parts[name]) / 64
  }

  /** Drops the entries that were not used since `unusedSweeps` sweeps. Returns their bytes. */
  dropUnused(): number {
    const before = this.bytes
    for (const share of this.#shares.values()) share.dropUnused()
    return before - this.bytes
  }

  get bytes(): number {
    return cacheNames.reduce((sum, name) => sum + this.bytesOf(name), 0)
  }

  bytesOf(name: CacheName): number {
    return this.#shares.get(name)?.bytes ?? 0
  }
}

export const cacheNames = Object.keys(parts) as ReadonlyArray<CacheName>

/** The memory of the caches of this process. A verb of the command line has the default. */
export const Caches: Context.Reference<CacheMemory> = Context.Reference<CacheMemory>(
  "bellcast/memory/Caches",
  { defaultValue: () => new CacheMemory(cacheBytesMax) }
)

/**
 * When the memory is full, one in 16 new values replaces older ones. A broadcast uses each value
 * once, in the same order: with an LRU cache each would be dropped just before its next use.
 */
const replacedOneInDefault = 16

interface Kept<V> {
  readonly value: V
  readonly bytes: number
  readonly until: number
  /** Sweeps of the share when the value was used last. */
  readonly usedIn: number
}

/** Values that can be read or made again, within a share of the memory of all caches. */
export class MemoryCache<V> {
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
    share.join(
      (since) => this.#dropUnused(since),
      () => this.#makeRoom(0)
    )
  }

  /** The value of a key, unless it expired before `now`: milliseconds, by the clock of `until`. */
  get(key: string, now = Number.NEGATIVE_INFINITY): V | undefined {
    const kept = this.#kept.get(key)
    if (kept === undefined) return undefined
    if (kept.until <= now) {
      this.drop(key)
      return undefined
    }
    const { sweeps } = this.#share
    if (kept.usedIn !== sweeps) {
      this.#kept.delete(key)
      this.#kept.set(key, { ...kept, usedIn: sweeps })
    }
    return kept.value
  }

  /**
   * Keeps a value of this many bytes until a time, unless the memory is full. A later `get` does
   * not extend the time.
   */
  set(key: string, value: V, bytes: number, until = Number.POSITIVE_INFINITY): void {
    this.setMade(key, bytes, () => ({ value, bytes }), until)
  }

  /** As `set`, of a value that is made only if it is kept. `bytesAbout`: its expected bytes. */
  setMade(
    key: string,
    bytesAbout: number,
    make: () => Pick<Kept<V>, "value" | "bytes">,
    until = Number.POSITIVE_INFINITY
  ): void {
    this.drop(key)
    if (!this.#fits(bytesAbout) && ++this.#unplaced % this.#replacedOneIn !== 0) return
    const made = make()
    if (made.bytes > this.#share.bytesMax) return
    this.#makeRoom(made.bytes)
    this.#kept.set(key, { ...made, until, usedIn: this.#share.sweeps })
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

  #makeRoom(bytes: number): void {
    for (const oldest of this.#kept.keys()) {
      if (this.#fits(bytes)) break
      this.drop(oldest)
    }
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
