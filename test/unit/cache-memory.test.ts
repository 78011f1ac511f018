// The memory that caches share: its bounds, what is kept when it is full, and how it is given back.
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { assert, describe, it } from "vitest"
import { alone, Group, type GroupShape } from "#children/group.ts"
import { Settings } from "#config"
import {
  CacheMemory,
  Caches,
  cacheNames,
  MemoryCache,
  Share,
  unusedSweeps
} from "#memory/cache-memory.ts"
import { cacheBytesWithin, cachesLayer, collect, isWorthHalt, lowMemory } from "#memory/upkeep.ts"
import { CachedEntries } from "#nats/kv/cached-entries.ts"

describe("the memory of all caches", () => {
  it("is divided without a rest, and never exceeded", () => {
    const caches = new CacheMemory(16_000)
    const shares = cacheNames.map((name) => caches.share(name))
    assert.equal(
      shares.reduce((sum, { bytesMax }) => sum + bytesMax, 0),
      16_000
    )
    const bounded = shares.filter(({ bytesMax }) => bytesMax > 0)
    for (const share of bounded) {
      const memory = new MemoryCache<number>(share)
      for (let i = 0; i < 1_000; i++) memory.set(String(i % 300), i, 100)
    }
    for (const share of bounded) {
      assert.isAtMost(share.bytes, share.bytesMax)
      assert.isAbove(share.bytes, 0)
    }
    assert.equal(
      caches.bytes,
      bounded.reduce((sum, { bytes }) => sum + bytes, 0)
    )
  })

  it("is the part of this process while others deliver, and whole again after that", async () => {
    let processes = 1
    let divided: Effect.Effect<void> = Effect.void
    const group: GroupShape = {
      ...alone,
      part: (whole) => Math.floor(whole / processes),
      processes: () => processes,
      divide: (apply) => {
        divided = apply
        return apply
      }
    }
    const config = ConfigProvider.layer(
      ConfigProvider.fromUnknown({ BELLCAST_CACHE_BYTES_MAX: "6400000" })
    )
    const layer = cachesLayer.pipe(
      Layer.provide(Layer.succeed(Group, group)),
      Layer.provide(Settings.layer.pipe(Layer.provide(config)))
    )
    const bytes = Effect.gen(function* () {
      const share = (yield* Caches).share("subscriptions")
      const whole = share.bytesMax
      processes = 4
      yield* divided
      const beside = share.bytesMax
      processes = 1
      yield* divided
      return [whole, beside, share.bytesMax]
    })
    const [whole, beside, after] = await Effect.runPromise(Effect.provide(bytes, layer))
    assert.isAbove(whole!, 0)
    assert.equal(beside, whole! / 4)
    assert.equal(after, whole)
  })

  it("of a cache that was made anew begins empty", () => {
    const caches = new CacheMemory(16_000)
    new MemoryCache<number>(caches.share("tally")).set("a", 1, 100)
    assert.equal(caches.bytesOf("tally"), 100)
    caches.share("tally")
    assert.equal(caches.bytesOf("tally"), 0)
  })

  it("is given back by what nobody uses, however often the rest is used", () => {
    const caches = new CacheMemory(16_000)
    const memory = new MemoryCache<number>(caches.share("subscriptions"))
    for (const name of ["a", "b", "c"]) memory.set(name, 1, 100)
    for (let sweep = 0; sweep < unusedSweeps; sweep++) {
      assert.equal(caches.dropUnused(), 0)
      assert.equal(memory.get("b"), 1)
    }
    memory.set("d", 1, 100)
    assert.equal(caches.dropUnused(), 200)
    assert.deepEqual(
      ["a", "b", "c", "d"].map((name) => memory.get(name)),
      [undefined, 1, undefined, 1]
    )
    assert.equal(caches.bytesOf("subscriptions"), 200)
    for (let sweep = 0; sweep < unusedSweeps; sweep++) caches.dropUnused()
    assert.equal(caches.bytes, 200)
    assert.equal(caches.dropUnused(), 200)
    assert.equal(caches.bytes, 0)
  })

  it("is given back by a follower, but for what it has not stored or works on", () => {
    const caches = new CacheMemory(16_000)
    const entries = new CachedEntries<number>(caches.share("projector"), (key) => key === "mine")
    const flush = () =>
      entries.evict(
        () => false,
        () => {}
      )
    for (const key of ["mine", "used", "unused"]) entries.add(key, 1, 1, 0)
    for (let sweep = 0; sweep <= unusedSweeps; sweep++) {
      entries.begin()
      assert.equal(entries.find("used")?.value, 1)
      assert.equal(caches.dropUnused(), 0)
      flush()
    }
    assert.isAbove(caches.dropUnused(), 0)
    assert.deepEqual(
      ["mine", "used", "unused"].map((key) => entries.has(key)),
      [true, true, false]
    )
  })
})

describe("what is read in the same order again and again", () => {
  it("is found in part, where there is room for a part of it", () => {
    const memory = new MemoryCache<number>(new Share(5_000))
    const names = Array.from({ length: 100 }, (_, i) => `name ${i}`)
    let found = 0
    for (let round = 0; round < 10; round++)
      for (const name of names) {
        if (memory.get(name) !== undefined) found += 1
        else memory.set(name, 1, 100)
      }
    // Half of it fits; each round replaces a few.
    assert.isAtLeast(found, 250)
  })

  it("counts once, however often it is placed, and nothing that is dropped", () => {
    const share = new Share(1_000)
    const memory = new MemoryCache<number>(share)
    for (let i = 0; i < 10; i++) memory.set("a", i, 100 + i)
    assert.equal(share.bytes, 109)
    assert.equal(memory.get("a"), 9)
    memory.drop("a")
    memory.drop("a")
    assert.equal(share.bytes, 0)
  })

  it("is made only to be kept", () => {
    const memory = new MemoryCache<string>(new Share(1_000))
    let made = 0
    const make = () => {
      made += 1
      return { value: "text", bytes: 100 }
    }
    for (let i = 0; i < 170; i++) memory.setMade(String(i), 100, make)
    // Ten fit. Of the other 160, one in 16 replaces an older one.
    assert.equal(made, 20)
  })

  it("is not driven out by what can never fit", () => {
    const memory = new MemoryCache<number>(new Share(1_000))
    for (let i = 0; i < 9; i++) memory.set(String(i), i, 100)
    for (let i = 0; i < 64; i++) memory.set("too large", 1, 1_001)
    assert.isUndefined(memory.get("too large"))
    for (let i = 0; i < 9; i++) assert.equal(memory.get(String(i)), i)
  })
})

describe("memory where the newest values are needed next", () => {
  it("holds the newest, and those that are in use", () => {
    const share = new Share(1_000)
    const memory = new MemoryCache<number>(share, 1)
    for (let i = 0; i < 10; i++) memory.set(String(i), i, 100)
    share.dropUnused()
    assert.equal(memory.get("0"), 0)
    for (let i = 10; i < 19; i++) memory.set(String(i), i, 100)
    assert.equal(memory.get("0"), 0)
    assert.equal(memory.get("18"), 18)
    assert.isUndefined(memory.get("9"))
    assert.equal(share.bytes, 1_000)
  })
})

it.for([
  ["of a start", true, { heap: 90, caches: 0, garbage: 90 }],
  ["after a large broadcast", true, { heap: 300, caches: 3, garbage: 200 }],
  ["of small broadcasts that go on", true, { heap: 90, caches: 70, garbage: 24 }],
  ["that is little", false, { heap: 90, caches: 0, garbage: 23 }],
  ["as long as caches hold a large broadcast", false, { heap: 300, caches: 100, garbage: 200 }]
] as const)("garbage %s is collected at rest: %s", ([, isWorth, { caches, garbage, heap }]) => {
  const mebibyte = 1024 ** 2
  const use = { heap: heap * mebibyte, caches: caches * mebibyte, garbage: garbage * mebibyte }
  assert.equal(isWorthHalt(use), isWorth)
})

it.for([
  [Number.POSITIVE_INFINITY, 112],
  [416, 112],
  [256, 32],
  [192, 0],
  [96, 0]
] as const)("with %s MiB, caches take %s", ([limit, caches]) => {
  const mebibyte = 1024 ** 2
  assert.equal(cacheBytesWithin(112 * mebibyte, limit * mebibyte), caches * mebibyte)
})

it("the warning of too little memory names the limit, the need and what to do", () => {
  const mebibyte = 1024 ** 2
  const roles = ["gateway", "delivery"] as const
  assert.isUndefined(lowMemory(["delivery"], 112 * mebibyte, 256 * mebibyte))
  assert.isUndefined(lowMemory(roles, 112 * mebibyte, 384 * mebibyte))
  assert.match(
    lowMemory(roles, 112 * mebibyte, 256 * mebibyte) ?? "",
    /may have 256 MiB of memory, and gateway,delivery needs 384.* 32 MiB instead of 112/
  )
})

it("what nothing refers to any more is collected on request", async () => {
  let garbage: ReadonlyArray<object> | undefined = Array.from({ length: 300_000 }, (_, n) => ({
    n
  }))
  await Effect.runPromise(collect)
  const before = process.memoryUsage().heapUsed
  assert.lengthOf(garbage, 300_000)
  garbage = undefined
  await Effect.runPromise(collect)
  assert.isBelow(process.memoryUsage().heapUsed, before - 5 * 1024 ** 2)
})
