// What a follower keeps of its buckets is bounded in bytes, and what it forgets is read again.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { Buckets } from "#log/bucket.ts"
import { logLayer } from "#log/layer.ts"
import { provision } from "#log/provision.ts"
import { makeMemory, makeWorkingSet } from "#log/working-set.ts"
import { startNats } from "../support/nats.ts"

const kibibyte = 1024
const valueBytes = 100 * kibibyte
const memoryBytes = 1024 * kibibyte

it("keeps as many bytes as several sets may together, however large values are", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const memory = makeMemory(memoryBytes)
    const large = yield* makeWorkingSet<{ text: string }>("subscriptions", memory)
    const small = yield* makeWorkingSet<{ n: number }>("registrations", memory)
    const keys = Array.from({ length: 60 }, (_, n) => `k${n}`)
    for (const [n, key] of keys.entries()) {
      yield* Effect.all([large.load([key]), small.load([key])])
      large.set(key, { text: "x".repeat(valueBytes) }, n + 1)
      small.set(key, { n }, n + 1)
      assert.equal(large.unstoredSince(), n + 1)
      yield* Effect.all([large.flush, small.flush])
      assert.equal(large.unstoredSince(), Number.POSITIVE_INFINITY)
      assert.isAtMost(memory.bytes, memoryBytes + 2 * valueBytes)
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
  await Effect.runPromise(program.pipe(Effect.provide(logLayer({ url: nats.url, name: "test" }))))
})
