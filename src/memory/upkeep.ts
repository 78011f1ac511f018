// Gives back the memory that a process does not need: drops what caches did not use for a minute,
// and collects the garbage of a process at rest. V8 collects only when memory is asked of it, so
// without this a process would stay as large as its largest broadcast has made it.
import { Session } from "node:inspector"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Group } from "#children/group.ts"
import { type Role, Settings } from "#config"
import { gauge, memoryLimit } from "#telemetry/process-metrics.ts"
import { CacheMemory, Caches, cacheNames, unusedSweeps } from "./cache-memory.ts"

const mebibyte = 1024 ** 2
/** Milliseconds between two sweeps: an entry that was not used for a minute is dropped. */
const sweepMillis = 60_000 / unusedSweeps
/** A process at rest takes less of a core than this. */
const restShareMax = 0.05
/** A heap with more bytes in use is not collected until caches drop entries. */
const inUseMax = 100 * mebibyte
/** Bytes of the heap that a process without its caches has in use (measured). */
const programBytes = 40 * mebibyte
/** A collection that can free less is not worth the halt. */
const garbageMin = 24 * mebibyte

/** A process with delivery and no caches stays below this in a broadcast to 30,000 (measured). */
const withoutCachesBytes = 192 * mebibyte

/**
 * Bytes for the caches of processes that may have `limit` bytes together: `wanted`, or what their
 * work leaves. An entry of a cache takes about twice its bytes, as garbage waits for the next
 * collection.
 */
export const cacheBytesWithin = (wanted: number, limit: number, processes = 1): number =>
  Math.min(wanted, Math.max(0, Math.floor((limit - processes * withoutCachesBytes) / 2)))

/** Mebibytes that a process needs: with fewer the kernel kills it in larger broadcasts. */
const neededMebibytes = (roles: ReadonlyArray<Role>): number =>
  roles.includes("delivery") && roles.length > 1 ? 384 : 256

/** The warning for a process that may have `limit` bytes; undefined: its roles need no more. */
export const lowMemory = (
  roles: ReadonlyArray<Role>,
  wanted: number,
  limit: number
): string | undefined => {
  const inMebibytes = (bytes: number) => Math.floor(bytes / mebibyte)
  const needed = neededMebibytes(roles)
  const caches = cacheBytesWithin(wanted, limit)
  return limit >= needed * mebibyte
    ? undefined
    : `this process may have ${inMebibytes(limit)} MiB of memory, and ${roles.join(",")} needs ` +
        `${needed}: the kernel may kill it in a large broadcast. Raise the limit of its ` +
        `container. Its caches take ${inMebibytes(caches)} MiB instead of ` +
        `${inMebibytes(wanted)} (BELLCAST_CACHE_BYTES_MAX)`
}

/**
 * Collects garbage as a debugger asks V8 to, so that no flag of V8 is needed. Of V8's collections,
 * only this one ("last-resort") makes the young generation small again: a start or a broadcast
 * needs 48 MiB of it.
 */
export const collect: Effect.Effect<void> = Effect.callback((resume) => {
  const session = new Session()
  session.connect()
  session.post("HeapProfiler.collectGarbage", () =>
    // Within this callback, disconnecting would wait for ever.
    setImmediate(() => {
      session.disconnect()
      resume(Effect.void)
    })
  )
})

/** CPU time of this process so far, in milliseconds. */
const cpuMillis = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1_000
}

/** What is known of the memory of a process at rest, in bytes. */
interface Use {
  /** V8's heap, garbage included. */
  readonly heap: number
  readonly caches: number
  /** What caches have dropped, and what else has grown, since the last collection. */
  readonly garbage: number
}

/**
 * Whether to collect the garbage of a process at rest. A collection halts the process: for 0.1 s
 * with 40 MiB in use and for 0.6 s with 300, almost as long as the renewal of a lease may take. V8
 * shows only an upper bound of the bytes in use.
 */
export const isWorthHalt = ({ caches, garbage, heap }: Use): boolean =>
  garbage >= garbageMin && Math.min(heap, programBytes + caches) <= inUseMax

/** Bytes in use just after a collection. */
const afterCollection = (caches: CacheMemory) => ({
  heapTotal: process.memoryUsage().heapTotal,
  caches: caches.bytes
})

const sweep = Effect.fnUntraced(function* (
  caches: CacheMemory,
  first: ReturnType<typeof afterCollection>
) {
  let collected = first
  // V8's heap does not show the memory of public keys, which a collection gives back.
  let droppedBytes = 0
  let before = cpuMillis()
  while (true) {
    yield* Effect.sleep(sweepMillis)
    const dropped = caches.dropUnused()
    droppedBytes += dropped
    const now = cpuMillis()
    const isAtRest = now - before < restShareMax * sweepMillis
    before = now
    // The next sweeps drop the rest of a broadcast's entries: one collection is enough.
    if (!isAtRest || dropped >= garbageMin) continue
    const { heapTotal, heapUsed } = process.memoryUsage()
    const cached = Math.max(0, caches.bytes - collected.caches)
    const garbage = Math.max(0, heapTotal - collected.heapTotal - cached) + droppedBytes
    if (!isWorthHalt({ heap: heapUsed, caches: caches.bytes, garbage })) continue
    yield* collect
    collected = afterCollection(caches)
    droppedBytes = 0
    before = cpuMillis()
  }
})

/** Adds what the caches hold to the registry of metrics. */
export const showCaches = (caches: CacheMemory) =>
  cacheNames.map((cache) =>
    gauge(
      "bellcast_cache_bytes",
      "Bytes that a cache holds, of BELLCAST_CACHE_BYTES_MAX for all of them",
      () => caches.bytesOf(cache),
      { cache }
    )
  )

/** The caches of this process, within the bytes of the settings, and their metrics. */
export const cachesLayer = Layer.effect(
  Caches,
  Effect.gen(function* () {
    const { cacheBytesMax, roles } = yield* Settings
    const limit = memoryLimit()
    const warning = lowMemory(roles, cacheBytesMax, limit)
    if (warning !== undefined) yield* Effect.logWarning(warning)
    const caches = new CacheMemory(0)
    const { divide, part, processes } = yield* Group
    yield* divide(
      Effect.sync(() => caches.resize(part(cacheBytesWithin(cacheBytesMax, limit, processes()))))
    )
    yield* Effect.acquireRelease(
      Effect.sync(() => showCaches(caches)),
      (metrics) =>
        Effect.sync(() => {
          for (const { remove } of metrics) remove()
        })
    )
    return caches
  })
)

/**
 * Gives back the memory that the start needed, before the process says that it is ready: 40 MiB of
 * one that runs the sources, in 0.05 s. A heap with little garbage, as that of a bundle, is left to
 * the sweeps. They give back what a broadcast needed. Nothing is swept while it waits for NATS.
 */
export const garbageLayer = Layer.effectDiscard(
  Effect.gen(function* () {
    const caches = yield* Caches
    const { heapTotal, heapUsed } = process.memoryUsage()
    const garbage = heapTotal - programBytes - caches.bytes
    const isWorth = isWorthHalt({ heap: heapUsed, caches: caches.bytes, garbage })
    if (isWorth) yield* collect
    const first = isWorth ? afterCollection(caches) : { heapTotal: programBytes, caches: 0 }
    yield* Effect.forkScoped(sweep(caches, first))
  })
)
