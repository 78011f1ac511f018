// What a follower keeps of its buckets is bounded in bytes, and what it forgets is read again.
import { Effect, type Scope } from "effect"
import { assert, it } from "vitest"
import { Share } from "#memory/cache-memory.ts"
import { provision } from "#nats/admin/provision.ts"
import type { Nats } from "#nats/connection/connection.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeWriteBackCache } from "#nats/kv/write-back-cache.ts"
import { natsLayer } from "#nats/layer.ts"
import { useEmptyNats } from "../support/use-service.ts"

const kibibyte = 1024
const valueBytes = 100 * kibibyte
const memoryBytes = 3 * 1024 * kibibyte

const shared = useEmptyNats({ syncAlways: false })

const run = (program: Effect.Effect<void, unknown, Buckets | Nats | Scope.Scope>) =>
  Effect.runPromise(
    Effect.andThen(provision(1), program).pipe(
      Effect.scoped,
      Effect.provide(natsLayer({ url: shared.nats.url, name: "test" }))
    )
  )

it("keeps as many bytes as several sets may together, however large values are", {
  timeout: 60_000
}, async () => {
  const program = Effect.gen(function* () {
    const share = new Share(memoryBytes)
    const large = yield* makeWriteBackCache<string, { text: string }>("subscriptions", share)
    const small = yield* makeWriteBackCache<string, { n: number }>("registrations", share)
    const keys = Array.from({ length: 60 }, (_, n) => `k${n}`)
    for (const [n, key] of keys.entries()) {
      yield* Effect.all([large.load([key]), small.load([key])])
      large.set(key, { text: "x".repeat(valueBytes) }, n + 1)
      small.set(key, { n }, n + 1)
      assert.equal(large.unstoredSince(), n + 1)
      yield* Effect.all([large.flush, small.flush])
      assert.equal(large.unstoredSince(), Number.POSITIVE_INFINITY)
      assert.isAtMost(share.bytes, memoryBytes + 6 * valueBytes)
    }
    // The small set keeps its share, whatever the other needs.
    assert.deepEqual(
      keys.map((key) => small.get(key)?.n),
      keys.map((_, n) => n)
    )
    assert.isUndefined(large.get(keys[0]!))
    assert.isAtLeast(yield* large.load([keys[0]!]), valueBytes)
    assert.lengthOf(large.get(keys[0]!)!.text, valueBytes)
    // A revision that was forgotten is known again, too.
    large.set(keys[0]!, { text: "" }, 61)
    yield* large.flush
    const entry = yield* (yield* Buckets).get("subscriptions", keys[0]!)
    assert.deepEqual(entry?.value, { text: "" })
  })
  await run(program)
})

it("removes what it has stored, writes nothing of what it has not, and leaves what another wrote", {
  timeout: 60_000
}, async () => {
  const program = Effect.gen(function* () {
    const buckets = yield* Buckets
    const set = yield* makeWriteBackCache<string, { n: number }>(
      "broadcasts",
      new Share(memoryBytes)
    )
    yield* set.load(["1", "2"])
    set.set("1", { n: 1 }, 1)
    yield* set.flush
    set.remove("1")
    assert.equal(set.unstoredSince(), Number.POSITIVE_INFINITY)
    const revision = yield* buckets.revision("broadcasts")
    set.set("2", { n: 2 }, 2)
    set.remove("2")
    yield* set.flush
    assert.isUndefined(yield* buckets.get("broadcasts", "1"))
    assert.isUndefined(yield* buckets.get("broadcasts", "2"))
    assert.equal(yield* buckets.revision("broadcasts"), revision)
    // One that was removed begins anew.
    set.loadAbsent("1")
    set.set("1", { n: 3 }, 3)
    yield* set.flush
    const third = yield* buckets.get("broadcasts", "1")
    assert.deepEqual(third?.value, { n: 3 })
    yield* buckets.put("broadcasts", "1", { n: 4 }, third!.revision)
    set.remove("1")
    yield* set.flush
    assert.deepEqual((yield* buckets.get("broadcasts", "1"))?.value, { n: 4 })
    // Taken for absent, and wrong: nothing is overwritten.
    set.loadAbsent("1")
    set.set("1", { n: 5 }, 5)
    assert.equal((yield* Effect.flip(set.flush))._tag, "NatsUnavailable")
    assert.deepEqual((yield* buckets.get("broadcasts", "1"))?.value, { n: 4 })
  })
  await run(program)
})

it("writes nothing over an entry that another process wrote since it was read", {
  timeout: 60_000
}, async () => {
  const program = Effect.gen(function* () {
    const make = makeWriteBackCache<string, { n: number }>("registrations", new Share(memoryBytes))
    const [former, next] = [yield* make, yield* make]
    for (const cache of [former, next]) yield* cache.load(["1"])
    next.set("1", { n: 2 }, 2)
    yield* next.flush
    former.set("1", { n: 1 }, 1)
    assert.equal((yield* Effect.flip(former.flush))._tag, "NatsUnavailable")
    assert.deepEqual((yield* (yield* Buckets).get("registrations", "1"))?.value, { n: 2 })
  })
  await run(program)
})

it("reads a key once that several load at the same moment", { timeout: 60_000 }, async () => {
  const program = Effect.gen(function* () {
    const buckets = yield* Buckets
    yield* buckets.put("subscriptions", "large", { text: "x".repeat(valueBytes) }, 0)
    let reads = 0
    const get: typeof buckets.get = (bucket, key) =>
      Effect.suspend(() => {
        reads += 1
        return buckets.get(bucket, key)
      })
    const cache = yield* makeWriteBackCache<string, { text: string }>(
      "subscriptions",
      new Share(memoryBytes)
    ).pipe(Effect.provideService(Buckets, Buckets.of({ ...buckets, get })))
    const sizes = yield* Effect.all(
      Array.from({ length: 32 }, () => cache.load(["large"])),
      { concurrency: "unbounded" }
    )
    assert.equal(reads, 1)
    assert.lengthOf(
      sizes.filter((size) => size > 0),
      1
    )
    assert.lengthOf(cache.get("large")!.text, valueBytes)
  })
  await run(program)
})

it("reads several keys with one request, as of their last writes", {
  timeout: 60_000
}, async () => {
  const program = Effect.gen(function* () {
    const buckets = yield* Buckets
    yield* buckets.put("subscriptions", "known", { text: "known" }, 0)
    const asked: Array<readonly [filters: number, minRevision: number]> = []
    const getMany: typeof buckets.getMany = (bucket, filters, minRevision) =>
      Effect.suspend(() => {
        asked.push([filters.length, minRevision])
        return buckets.getMany(bucket, filters, minRevision)
      })
    const share = new Share(valueBytes)
    const cache = yield* makeWriteBackCache<string, { text: string }>("subscriptions", share).pipe(
      Effect.provideService(Buckets, Buckets.of({ ...buckets, getMany }))
    )
    const from = yield* buckets.revision("subscriptions")
    // One key is in memory already.
    yield* cache.load(["small"])
    const bytes = yield* cache.loadTogether(["small", "known", "k0", "k1"])
    assert.equal(bytes, JSON.stringify({ text: "known" }).length)
    assert.deepEqual(asked, [[3, from]])
    assert.equal(cache.get("known")?.text, "known")
    assert.isUndefined(cache.get("k0"))
    // A replica that has what was there at first needs not have the writes of entries in memory.
    cache.set("small", { text: "small" }, 1)
    yield* cache.flush
    yield* cache.loadTogether(["k2", "k3"])
    assert.deepEqual(asked.at(-1), [2, from])
    for (const n of [0, 1]) cache.set(`k${n}`, { text: `${n}`.repeat(valueBytes) }, n + 2)
    yield* cache.flush
    assert.isUndefined(cache.get("k0"))
    assert.isUndefined(cache.get("k1"))
    const written = yield* buckets.revision("subscriptions")
    yield* cache.loadTogether(["k0", "k1"])
    assert.deepEqual(asked.at(-1), [2, written])
    cache.set("k1", { text: "again" }, 4)
    yield* cache.flush
    assert.deepEqual((yield* buckets.get("subscriptions", "k1"))?.value, { text: "again" })
  })
  await run(program)
})
