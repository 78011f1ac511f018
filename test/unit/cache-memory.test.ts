// The memory that caches share: its bounds, what is kept when it is full, and how it is given back.
import { assert, describe, it } from "vitest"
import { CacheMemory, cacheNames, Share } from "#memory/cache-memory.ts"
import { ReadMemory } from "#memory/read-memory.ts"
import { collector } from "#memory/upkeep.ts"

describe("the memory of all caches", () => {
  it("is divided without a rest, and never exceeded", () => {
    const caches = new CacheMemory(16_000)
    const shares = cacheNames.map((name) => caches.share(name))
    assert.equal(
      shares.reduce((sum, { bytesMax }) => sum + bytesMax, 0),
      16_000
    )
    for (const share of shares) {
      const memory = new ReadMemory<number>(share)
      for (let i = 0; i < 1_000; i++) memory.place(String(i % 300), i, 100)
    }
    for (const [i, name] of cacheNames.entries()) {
      assert.isAtMost(caches.bytesOf(name), shares[i]!.bytesMax)
      assert.isAbove(caches.bytesOf(name), 0)
    }
  })

  it("of a cache that was made anew begins empty", () => {
    const caches = new CacheMemory(16_000)
    new ReadMemory<number>(caches.share("tally")).place("a", 1, 100)
    assert.equal(caches.bytesOf("tally"), 100)
    caches.share("tally")
    assert.equal(caches.bytesOf("tally"), 0)
  })

  it("is given back by caches that nobody uses, and by no other", () => {
    const caches = new CacheMemory(16_000)
    const memory = new ReadMemory<number>(caches.share("subscriptions"))
    memory.place("a", 1, 100)
    assert.isFalse(caches.shrink(60_000))
    assert.equal(memory.find("a"), 1)
    assert.isTrue(caches.shrink(0))
    assert.isFalse(caches.shrink(0))
    assert.isUndefined(memory.find("a"))
    assert.equal(caches.bytesOf("subscriptions"), 0)
  })
})

describe("what is read in the same order again and again", () => {
  it("is found in part, where there is room for a part of it", () => {
    const memory = new ReadMemory<number>(new Share(5_000))
    const names = Array.from({ length: 100 }, (_, i) => `name ${i}`)
    let found = 0
    for (let round = 0; round < 10; round++)
      for (const name of names) {
        if (memory.find(name) !== undefined) found += 1
        else memory.place(name, 1, 100)
      }
    // Half of it fits; each round replaces a few.
    assert.isAtLeast(found, 250)
  })

  it("counts once, however often it is placed, and nothing that is dropped", () => {
    const share = new Share(1_000)
    const memory = new ReadMemory<number>(share)
    for (let i = 0; i < 10; i++) memory.place("a", i, 100 + i)
    assert.equal(share.bytes, 109)
    assert.equal(memory.find("a"), 9)
    memory.drop("a")
    memory.drop("a")
    assert.equal(share.bytes, 0)
  })

  it("is not driven out by what can never fit", () => {
    const memory = new ReadMemory<number>(new Share(1_000))
    for (let i = 0; i < 9; i++) memory.place(String(i), i, 100)
    for (let i = 0; i < 64; i++) memory.place("too large", 1, 1_001)
    assert.isUndefined(memory.find("too large"))
    for (let i = 0; i < 9; i++) assert.equal(memory.find(String(i)), i)
  })
})

it("what nothing refers to any more is collected on request", () => {
  const collect = collector()
  let garbage: ReadonlyArray<object> | undefined = Array.from({ length: 300_000 }, (_, n) => ({
    n
  }))
  collect()
  const before = process.memoryUsage().heapUsed
  assert.lengthOf(garbage, 300_000)
  garbage = undefined
  collect()
  assert.isBelow(process.memoryUsage().heapUsed, before - 5 * 1024 ** 2)
})
