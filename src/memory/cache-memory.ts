// One budget of bytes for the caches of a process. Each cache has a fixed share of it.
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

export type CacheName = keyof typeof parts

/** Sweeps after which an entry that was not used is dropped: a minute (see upkeep.ts). */
export const unusedSweeps = 4

/** The memory of one cache, or of several that divide it among themselves. */
export class Share {
  readonly bytesMax: number
  bytes = 0
  /** Calls of `dropUnused` so far. Each entry has the number at which it was used last. */
  sweeps = 0
  readonly #holders: Array<(since: number) => void> = []

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Adds a cache. `drop` drops the entries used last before a sweep, if they may be dropped. */
  join(drop: (since: number) => void): void {
    this.#holders.push(drop)
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
  readonly #bytesMax: number
  readonly #shares = new Map<CacheName, Share>()

  /** `bytesMax`: the most that all caches may hold together. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Returns an empty share. It replaces a former one of the name, whose caches are gone. */
  share(name: CacheName): Share {
    const share = new Share((this.#bytesMax * parts[name]) / 64)
    this.#shares.set(name, share)
    return share
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
