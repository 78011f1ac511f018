// Values that expire, in the memory of all caches.
import { assert, it } from "vitest"
import { MemoryCache, Share, unusedSweeps } from "#memory/cache-memory.ts"

it("returns a value until it expires, however often it is used", () => {
  const share = new Share(1_000)
  const memory = new MemoryCache<string>(share, 1)
  memory.set("a", "one", 10, 100)
  assert.equal(memory.get("a", 99), "one")
  assert.equal(share.bytes, 10)
  assert.isUndefined(memory.get("a", 100))
  assert.equal(share.bytes, 0)
})

it("replaces the value that was not used for longest, when its share is full", () => {
  const share = new Share(20)
  const memory = new MemoryCache<string>(share, 1)
  for (const key of ["a", "b", "c"]) memory.set(key, key, 10, 100)
  assert.equal(share.bytes, 20)
  assert.isUndefined(memory.get("a", 0))
  assert.equal(memory.get("c", 0), "c")
})

it("keeps nothing without memory, and drops what was not used for a minute", () => {
  const none = new MemoryCache<string>(new Share(0), 1)
  none.set("a", "one", 10, 100)
  assert.isUndefined(none.get("a", 0))
  const share = new Share(100)
  const some = new MemoryCache<string>(share, 1)
  some.set("a", "one", 10, 100)
  for (let sweep = 0; sweep <= unusedSweeps; sweep += 1) share.dropUnused()
  assert.isUndefined(some.get("a", 0))
  assert.equal(share.bytes, 0)
})
