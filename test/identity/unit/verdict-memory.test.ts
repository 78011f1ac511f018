// The memory that verified tokens take: bounded in bytes, and given back without use.
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { Settings } from "#config"
import { groupsMax } from "#identity/principals.ts"
import { IdentitySettings } from "#identity/settings.ts"
import { known } from "#identity/verdict.ts"
import { Failures } from "#identity/verification/failures.ts"
import { Verifications } from "#identity/verification/verifications.ts"
import { CacheMemory, Caches, unusedSweeps } from "#memory/cache-memory.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeDiskBuckets } from "#nats/kv/disk-buckets.ts"

const bytesMax = 4 * 1024 ** 2
const asker = { address: "192.0.2.1", patienceMillis: 1_000 }
const groups = Array.from({ length: groupsMax }, (_, i) => `group ${i} ${"x".repeat(100)}`)

it.live("is bounded by the budget, holds the tokens in use, and is given back", () => {
  const caches = new CacheMemory(bytesMax)
  const services = Verifications.layer.pipe(
    Layer.provide(Failures.layer),
    Layer.provide(IdentitySettings.layer),
    Layer.provide(Settings.layer),
    Layer.provide(Layer.succeed(Caches, caches)),
    Layer.provide(
      Layer.effect(
        Buckets,
        Effect.map(makeDiskBuckets, ({ buckets }) => buckets)
      )
    ),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
  )
  let verifications = 0
  return Effect.gen(function* () {
    const verified = (yield* Verifications).make({
      policy: "token",
      verify: (token) =>
        Effect.sync(() => {
          verifications += 1
          return known(token, groups)
        })
    })
    const names = Array.from({ length: 200 }, (_, i) => `user${i}`)
    for (const name of names) yield* verified(name, asker)
    assert.strictEqual(verifications, names.length)
    assert.isAtMost(caches.bytesOf("logins"), bytesMax / 16)
    assert.isAtLeast(caches.bytesOf("logins"), 10 * groupsMax * 100)
    for (let sweep = 0; sweep <= unusedSweeps; sweep++) {
      yield* verified(names.at(-1)!, asker)
      caches.dropUnused()
    }
    assert.strictEqual(verifications, names.length)
    assert.isBelow(caches.bytesOf("logins"), 2 * groupsMax * 150)
    for (let sweep = 0; sweep <= unusedSweeps; sweep++) caches.dropUnused()
    assert.strictEqual(caches.bytes, 0)
    yield* verified(names.at(-1)!, asker)
    assert.strictEqual(verifications, names.length + 1)
  }).pipe(Effect.provide(services))
})
