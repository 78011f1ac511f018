// Reads of buckets: what they cost, the changes of keys, and an error for an entry that is no JSON.
import { inspect } from "node:util"
import { Effect, Fiber } from "effect"
import { assert, it } from "vitest"
import { endpointHash } from "#domain/subscription/owners.ts"
import { provision } from "#nats/admin/provision.ts"
import { Nats } from "#nats/connection/connection.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { builtMillis } from "#nats/kv/read-one.ts"
import { natsLayer } from "#nats/layer.ts"
import { keys, metaKey } from "#streams/buckets.ts"
import { until } from "../support/client.ts"
import { useEmptyNats } from "../support/use-service.ts"
import { tokenOf } from "../support/users.ts"

const shared = useEmptyNats({ syncAlways: false })

const withBuckets = (
  program: (buckets: Buckets["Service"], nats: Nats["Service"]) => Effect.Effect<void, unknown>
) =>
  Effect.gen(function* () {
    yield* provision(1)
    yield* program(yield* Buckets, yield* Nats)
  }).pipe(Effect.provide(natsLayer({ url: shared.nats.url, name: "test" })), Effect.runPromise)

it("fails a read of an entry that is no JSON, and keeps the connection", () =>
  withBuckets((buckets, { nc }) =>
    Effect.gen(function* () {
      const { client_id } = nc.info!
      yield* buckets.putText("registrations", "broken.one", "secret text", 0)
      const begin = performance.now()
      const failure = yield* Effect.flip(buckets.getMany("registrations", ["broken.>"], 0))
      assert.isBelow(performance.now() - begin, 2_000)
      assert.notInclude(inspect(failure, { depth: null }), "secret")
      assert.deepEqual(yield* buckets.getMany("registrations", ["whole.>"], 0), [])
      assert.equal(nc.info!.client_id, client_id)
    })
  ))

it("tells of changes of lists, and not of pages with owners of endpoints", () =>
  withBuckets((buckets) =>
    Effect.gen(function* () {
      const changed: Array<string> = []
      const begin = yield* buckets.revision("subscriptions")
      const following = yield* Effect.forkChild(
        buckets.changes("subscriptions", begin, (key) => changed.push(key))
      )
      const [ann, bob] = [keys.subscriptions(tokenOf("ann")), keys.subscriptions(tokenOf("bob"))]
      const page = keys.endpointOwners(endpointHash("https://push.example.org/1"))
      for (const key of [ann, page, bob]) yield* buckets.putText("subscriptions", key, "{}", 0)
      yield* Effect.promise(() =>
        until(
          async () => changed,
          (all) => all.length > 1
        )
      )
      yield* Fiber.interrupt(following)
      assert.deepEqual(changed, [ann, bob])
    })
  ))

it("asks once whether a bucket is built, for all that find no entry at one moment", () =>
  withBuckets((buckets, { nc }) =>
    Effect.gen(function* () {
      const readers = 50
      // Asks for the number of replicas, too.
      yield* buckets.get("channels", "nobody")
      yield* Effect.sleep(2 * builtMillis)
      const before = nc.stats().outMsgs
      const found = yield* Effect.forEach(
        Array.from({ length: readers }, (_, n) => `nobody${n}`),
        (key) => buckets.get("channels", key),
        { concurrency: "unbounded" }
      )
      assert.isTrue(found.every((entry) => entry === undefined))
      // On a busy machine also a second check, and a request for the number of replicas.
      assert.isBelow(nc.stats().outMsgs - before, readers + 5)
    })
  ))

it("asks again after a bucket was found unbuilt", () =>
  withBuckets((buckets) =>
    Effect.gen(function* () {
      const meta = yield* buckets.get("channels", metaKey)
      yield* buckets.putText("channels", metaKey, "", meta!.revision)
      yield* Effect.sleep(2 * builtMillis)
      const get = buckets.get("channels", "nobody")
      assert.equal((yield* Effect.flip(get))._tag, "NatsUnavailable")
      const revision = yield* buckets.revision("channels")
      yield* buckets.put("channels", metaKey, meta!.value, revision)
      assert.isUndefined(yield* get)
    })
  ))
