// Gives back the memory that a process does not need: empties caches that were not used for a
// minute, and collects the garbage of a process at rest. V8 collects only when memory is asked of
// it, so without this a process would stay as large as its largest broadcast has made it.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Settings } from "#config"
import { gauge } from "#telemetry/process-metrics.ts"
import { CacheMemory, Caches, cacheNames } from "./cache-memory.ts"

const unusedMillis = 60_000
const lookMillis = 15_000
/** A process at rest takes less of a core than this. */
const restShareMax = 0.05
/**
 * Caches that hold less count as empty. A collection waits for that: it halts the process for 0.1 s
 * with 40 MiB in use and for 0.6 s with 300, almost as long as the renewal of a lease may take.
 */
const emptyBytes = 4 * 1024 ** 2
/** A heap that has grown by less since the last collection is not worth the halt. */
const grownBytesMin = 24 * 1024 ** 2

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

const upkeep = Effect.fnUntraced(function* (caches: CacheMemory) {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
  const collect = collector()
  // The first collection gives back what the start needed.
  let collectedBytes = 0
  let before = cpuMillis()
  while (true) {
    yield* Effect.sleep(lookMillis)
    // V8's heap does not show the memory of public keys, which a collection gives back.
    if (caches.shrink(unusedMillis)) collectedBytes = 0
    const now = cpuMillis()
    const isAtRest = now - before < restShareMax * lookMillis
    before = now
    if (!isAtRest || caches.bytes > emptyBytes) continue
    if (process.memoryUsage().heapTotal - collectedBytes < grownBytesMin) continue
    collect()
    collectedBytes = process.memoryUsage().heapTotal
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
