// The read cache of a worker never returns a value older than the revision that is asked for, and
// never says that a key is unchanged which may have changed.
import { Deferred, Effect, Fiber } from "effect"
import { assert, describe, it } from "vitest"
import { Share } from "#memory/cache-memory.ts"
import { provision } from "#nats/admin/provision.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeReadCache, type ReadCache } from "#nats/kv/read-cache.ts"
import { natsLayer } from "#nats/layer.ts"
import { bucketStream } from "#streams/buckets.ts"
import { until } from "../support/client.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { useEmptyNats } from "../support/use-service.ts"

const bucket = "registrations"
const shared = useEmptyNats({ syncAlways: false })

/** Runs a program with a bucket and its read cache. `asked` lists what the cache did not have. */
const withCache = async (
  bytesMax: number,
  program: (tools: {
    readonly put: (key: string, value: string) => Effect.Effect<number, unknown>
    readonly values: (
      filters: ReadonlyArray<string>,
      floor: number
    ) => Effect.Effect<ReadonlyMap<string, string>, unknown>
    readonly changesFromNow: ReadCache<string, string>["changesFromNow"]
    readonly asked: Array<string>
    readonly beforeAnswering: { wait: Effect.Effect<void> }
    readonly natsUrl: string
  }) => Effect.Effect<void, unknown>
) => {
  const { url } = shared.nats
  const run = Effect.gen(function* () {
    yield* provision(1)
    const buckets = yield* Buckets
    const revisions = new Map<string, number>()
    const asked: Array<string> = []
    const beforeAnswering = { wait: Effect.void as Effect.Effect<void> }
    const put = (key: string, value: string) =>
      buckets
        .put(bucket, key, value, revisions.get(key) ?? 0)
        .pipe(Effect.tap((revision) => Effect.sync(() => revisions.set(key, revision))))
    const cache = yield* makeReadCache(bucket, new Share(bytesMax), (filters, floor) =>
      Effect.gen(function* () {
        asked.push(...filters)
        const values = new Map<string, string>()
        for (const filter of filters) {
          const entries = yield* buckets.getMany(bucket, [filter], floor)
          values.set(filter, entries!.map(({ value }) => value).join())
        }
        yield* beforeAnswering.wait
        return values
      })
    )
    // Until the bucket is followed, everything is asked for.
    const floor = yield* put("settled", "yes")
    while (asked.length === 0 || asked.length > 1) {
      asked.length = 0
      yield* cache.values(["settled"], floor)
      yield* cache.values(["settled"], floor)
    }
    asked.length = 0
    const { changesFromNow, values } = cache
    yield* program({ put, values, changesFromNow, asked, beforeAnswering, natsUrl: url })
  })
  await Effect.runPromise(Effect.scoped(run).pipe(Effect.provide(natsLayer({ url, name: "test" }))))
}

describe("a cached list", { timeout: 60_000 }, () => {
  it("is read once, and again as soon as its key has changed", () =>
    withCache(100_000, ({ asked, values, put }) =>
      Effect.gen(function* () {
        for (let i = 0; i < 100; i++) {
          const floor = yield* put("ada", `value ${i}`)
          for (let again = 0; again < 3; again++)
            assert.deepEqual((yield* values(["ada"], floor)).get("ada"), `value ${i}`)
          yield* put("grace", `other ${i}`)
        }
        assert.equal(asked.length, 100)
      })
    ))

  it("is not kept when its key changes while it is read", () =>
    withCache(100_000, ({ asked, beforeAnswering, values, put }) =>
      Effect.gen(function* () {
        const first = yield* put("ada", "old")
        const [read, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        beforeAnswering.wait = Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(go))
        const reading = yield* Effect.forkChild(values(["ada"], first))
        yield* Deferred.await(read)
        beforeAnswering.wait = Effect.void
        const second = yield* put("ada", "new")
        // The cache has received the change now, as this read waits for it.
        yield* values(["settled"], second)
        yield* Deferred.succeed(go, undefined)
        assert.deepEqual((yield* Fiber.join(reading)).get("ada"), "old")
        assert.deepEqual((yield* values(["ada"], second)).get("ada"), "new")
        assert.deepEqual(asked, ["ada", "ada"])
      })
    ))

  it("of a wildcard changes with every key below it, and with no other", () =>
    withCache(100_000, ({ asked, values, put }) =>
      Effect.gen(function* () {
        yield* put("news.a.1.ada", "ada")
        const first = yield* put("news.b.1.bob", "bob")
        yield* values(["news.a.>", "news.>"], first)
        const second = yield* put("news.b.2.eve", "eve")
        assert.deepEqual((yield* values(["news.a.>"], second)).get("news.a.>"), "ada")
        assert.deepEqual((yield* values(["news.>"], second)).get("news.>"), "ada,bob,eve")
        assert.deepEqual(asked, ["news.a.>", "news.>", "news.>"])
      })
    ))

  it("takes no more room than it may, and then still saves some of the reading", () =>
    withCache(10 * 260, ({ asked, values, put }) =>
      Effect.gen(function* () {
        const names = Array.from({ length: 40 }, (_, i) => `user-${i}`)
        let floor = 0
        for (const name of names) floor = yield* put(name, name)
        for (let round = 0; round < 3; round++) {
          asked.length = 0
          const found = yield* values(names, floor)
          assert.deepEqual(
            names.map((name) => found.get(name)),
            names
          )
        }
        assert.isAtLeast(asked.length, 30)
        assert.isBelow(asked.length, 40)
      })
    ))
})

/** Deletes the consumers that follow the bucket, so that changes may be missed. */
const breakWatch = async (natsUrl: string) => {
  await using admin = await connectAdmin(natsUrl)
  const stream = bucketStream(bucket)
  const consumers = await admin.jsm.consumers.list(stream).next()
  for (const { name } of consumers) await admin.jsm.consumers.delete(stream, name)
}

describe("a key", { timeout: 60_000 }, () => {
  it("has changed since a moment when its change is announced, and no other key has", () =>
    withCache(100_000, ({ changesFromNow, put, values }) =>
      Effect.gen(function* () {
        yield* put("ada", "old")
        const floor = yield* put("bob", "old")
        yield* values(["settled"], floor)
        const isChanged = changesFromNow()
        yield* values(["settled"], yield* put("ada", "new"))
        assert.deepEqual(["ada", "bob"].map(isChanged), [true, false])
        assert.deepEqual(["ada", "bob"].map(changesFromNow()), [false, false])
      })
    ))

  it("may have changed where changes were missed", () =>
    withCache(100_000, ({ asked, changesFromNow, natsUrl, put, values }) =>
      Effect.gen(function* () {
        const floor = yield* put("ada", "old")
        yield* values(["settled"], floor)
        const isChanged = changesFromNow()
        assert.isFalse(isChanged("ada"))
        yield* Effect.promise(() => breakWatch(natsUrl))
        yield* Effect.promise(() => until(async () => isChanged("ada"), Boolean))
        // Followed again, it is no less uncertain.
        yield* Effect.promise(() =>
          until(
            async () => {
              asked.length = 0
              await Effect.runPromise(Effect.asVoid(values(["settled"], floor)))
              await Effect.runPromise(Effect.asVoid(values(["settled"], floor)))
              return asked.length
            },
            (count) => count < 2
          )
        )
        assert.isTrue(isChanged("ada"))
        assert.isFalse(changesFromNow()("ada"))
      })
    ))

  it("may have changed before the last 10,000 changes", () =>
    withCache(100_000, ({ changesFromNow, put, values }) =>
      Effect.gen(function* () {
        const floor = yield* put("ada", "old")
        yield* values(["settled"], floor)
        const isChanged = changesFromNow()
        yield* put("ada", "new")
        const others = Array.from({ length: 10_000 }, (_, i) => `user-${i}`)
        const revisions = yield* Effect.forEach(others, (key) => put(key, "new"), {
          concurrency: 128
        })
        yield* values(["settled"], Math.max(...revisions))
        assert.isTrue(isChanged("ada"))
        assert.isFalse(changesFromNow()("ada"))
      })
    ))
})
