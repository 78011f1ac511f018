// What a worker remembers of a bucket is never older than what it was asked for.
import { Deferred, Effect, Fiber } from "effect"
import { assert, describe, it } from "vitest"
import { provision } from "#nats/admin/provision.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeReadCache } from "#nats/kv/read-cache.ts"
import { natsLayer } from "#nats/layer.ts"
import { startNats } from "../support/nats.ts"

const bucket = "subscriptions"

/** A bucket, and what is remembered of it; `asked` lists what was not. */
const withRemembered = async (
  itemsMax: number,
  program: (tools: {
    readonly put: (key: string, value: string) => Effect.Effect<number, unknown>
    readonly lists: (
      filters: ReadonlyArray<string>,
      floor: number
    ) => Effect.Effect<ReadonlyMap<string, ReadonlyArray<unknown>>, unknown>
    readonly asked: Array<string>
    readonly beforeAnswering: { wait: Effect.Effect<void> }
  }) => Effect.Effect<void, unknown>
) => {
  await using nats = await startNats()
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
    const remembered = yield* makeReadCache(bucket, itemsMax, (filters, floor) =>
      Effect.gen(function* () {
        asked.push(...filters)
        const lists = new Map<string, ReadonlyArray<unknown>>()
        for (const filter of filters) {
          const entries = yield* buckets.getMany(bucket, [filter], floor)
          lists.set(
            filter,
            entries!.map(({ value }) => value)
          )
        }
        yield* beforeAnswering.wait
        return lists
      })
    )
    // Until the bucket is followed, everything is asked for.
    const floor = yield* put("settled", "yes")
    while (asked.length === 0 || asked.length > 1) {
      asked.length = 0
      yield* remembered.lists(["settled"], floor)
      yield* remembered.lists(["settled"], floor)
    }
    asked.length = 0
    yield* program({ put, lists: remembered.lists, asked, beforeAnswering })
  })
  await Effect.runPromise(
    Effect.scoped(run).pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" })))
  )
}

describe("a remembered list", { timeout: 60_000 }, () => {
  it("is read once, and again as soon as its key has changed", () =>
    withRemembered(100, ({ asked, lists, put }) =>
      Effect.gen(function* () {
        for (let i = 0; i < 100; i++) {
          const floor = yield* put("ada", `value ${i}`)
          for (let again = 0; again < 3; again++)
            assert.deepEqual((yield* lists(["ada"], floor)).get("ada"), [`value ${i}`])
          yield* put("grace", `other ${i}`)
        }
        assert.equal(asked.length, 100)
      })
    ))

  it("is not kept when its key changes while it is read", () =>
    withRemembered(100, ({ asked, beforeAnswering, lists, put }) =>
      Effect.gen(function* () {
        const first = yield* put("ada", "old")
        const [read, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        beforeAnswering.wait = Effect.andThen(Deferred.succeed(read, undefined), Deferred.await(go))
        const reading = yield* Effect.forkChild(lists(["ada"], first))
        yield* Deferred.await(read)
        beforeAnswering.wait = Effect.void
        const second = yield* put("ada", "new")
        // Heard of, since this one waits until it is.
        yield* lists(["settled"], second)
        yield* Deferred.succeed(go, undefined)
        assert.deepEqual((yield* Fiber.join(reading)).get("ada"), ["old"])
        assert.deepEqual((yield* lists(["ada"], second)).get("ada"), ["new"])
        assert.deepEqual(asked, ["ada", "ada"])
      })
    ))

  it("of a wildcard changes with every key below it, and with no other", () =>
    withRemembered(100, ({ asked, lists, put }) =>
      Effect.gen(function* () {
        yield* put("news.a.1.ada", "ada")
        const first = yield* put("news.b.1.bob", "bob")
        yield* lists(["news.a.>", "news.>"], first)
        const second = yield* put("news.b.2.eve", "eve")
        assert.deepEqual((yield* lists(["news.a.>"], second)).get("news.a.>"), ["ada"])
        assert.deepEqual((yield* lists(["news.>"], second)).get("news.>"), ["ada", "bob", "eve"])
        assert.deepEqual(asked, ["news.a.>", "news.>", "news.>"])
      })
    ))

  it("takes no more room than it may, and then still saves some of the reading", () =>
    withRemembered(10, ({ asked, lists, put }) =>
      Effect.gen(function* () {
        const names = Array.from({ length: 40 }, (_, i) => `user-${i}`)
        let floor = 0
        for (const name of names) floor = yield* put(name, name)
        for (let round = 0; round < 3; round++) {
          asked.length = 0
          const found = yield* lists(names, floor)
          assert.deepEqual(
            names.map((name) => found.get(name)),
            names.map((name) => [name])
          )
        }
        assert.isAtLeast(asked.length, 30)
        assert.isBelow(asked.length, 40)
      })
    ))
})
