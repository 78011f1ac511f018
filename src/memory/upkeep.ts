// Gives back the memory that a process does not need: drops what caches did not use for a minute,
// and collects the garbage of a process at rest. V8 collects only when memory is asked of it, so
// without this a process would stay as large as its largest broadcast has made it.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Settings } from "#config"
import { gauge } from "#telemetry/process-metrics.ts"
import { CacheMemory, Caches, cacheNames, unusedLooks } from "./cache-memory.ts"

const mebibyte = 1024 ** 2
/** A quarter of the time after which an unused entry is dropped: see `unusedLooks`. */
const lookMillis = 60_000 / unusedLooks
/** A process at rest takes less of a core than this. */
const restShareMax = 0.05
/** A heap that has more in use is not collected until caches drop what they do not use. */
const inUseMax = 100 * mebibyte
/** In use of a program without its caches (measured). */
const programBytes = 40 * mebibyte
/** Less that was dropped, or by which the heap has grown since, is not worth the halt. */
const garbageMin = 24 * mebibyte

/**
 * How much the heap may grow, in percent of what is in use, before V8 collects garbage. By default
 * V8 lets it grow fourfold on a large machine: 795 MiB instead of 465 in a broadcast to 100,000, at
 * the same CPU of a push (measured).
 */
const growthPercent = 25

/**
 * Returns the collector of V8, which only this flag gives to a program. Of its collections, only
 * "last-resort" makes the young generation small again: a start or a broadcast needs 48 MiB of it.
 */
export const collector = (): (() => void) => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as (options: object) => void
  return () => collect({ type: "major", execution: "sync", flavor: "last-resort" })
}

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
 * Whether to collect the garbage of a process at rest. A collection halts the process by what is in
 * use: for 0.1 s with 40 MiB and for 0.6 s with 300, almost as long as the renewal of a lease may
 * take. V8 does not tell how much that is, only what it is at most.
 */
export const isWorthHalt = ({ caches, garbage, heap }: Use): boolean =>
  garbage >= garbageMin && Math.min(heap, programBytes + caches) <= inUseMax

const upkeep = Effect.fnUntraced(function* (caches: CacheMemory) {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  const collect = collector()
  // The first collection gives back what the start needed.
  let collected = { heapTotal: 0, caches: 0 }
  // V8's heap does not show the memory of public keys, which a collection gives back.
  let droppedBytes = 0
  let before = cpuMillis()
  while (true) {
    yield* Effect.sleep(lookMillis)
    const dropped = caches.dropUnused()
    droppedBytes += dropped
    const now = cpuMillis()
    const isAtRest = now - before < restShareMax * lookMillis
    before = now
    // The rest of a broadcast's entries is dropped in the next looks: one collection is enough.
    if (!isAtRest || dropped >= garbageMin) continue
    const { heapTotal, heapUsed } = process.memoryUsage()
    const cached = Math.max(0, caches.bytes - collected.caches)
    const garbage = Math.max(0, heapTotal - collected.heapTotal - cached) + droppedBytes
    if (!isWorthHalt({ heap: heapUsed, caches: caches.bytes, garbage })) continue
    collect()
    collected = { heapTotal: process.memoryUsage().heapTotal, caches: caches.bytes }
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
    const caches = new CacheMemory((yield* Settings).cacheBytesMax)
    yield* Effect.acquireRelease(
      Effect.sync(() => showCaches(caches)),
      (metrics) =>
        Effect.sync(() => {
          for (const { remove } of metrics) remove()
        })
    )
    yield* Effect.forkScoped(upkeep(caches))
    return caches
  })
)
