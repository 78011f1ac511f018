// Identification when the server's clock, which is that of the service, is set back.
import { assert, it } from "@effect/vitest"
import { Clock, ConfigProvider, Effect, Layer } from "effect"
import { ServiceClock } from "#clock/clocks.ts"
import { Settings } from "#config"
import { makeAttempts } from "#identity/login/openid-login.ts"
import { IdentitySettings } from "#identity/settings.ts"
import { invalidToken, known } from "#identity/verdict.ts"
import { Failures } from "#identity/verification/failures.ts"
import { Verifications } from "#identity/verification/verifications.ts"
import { Buckets } from "#nats/kv/bucket.ts"
import { makeDiskBuckets } from "#nats/kv/disk-buckets.ts"

const start = 1_800_000_000_000
const hour = 3_600_000

/** The clock of a service that has run for an hour. `pass` and `set` are in milliseconds. */
const serviceClock = () => {
  let passed = hour
  const base = Clock.Clock.defaultValue()
  const clock = new ServiceClock({
    ...base,
    sleep: (duration) => base.sleep(duration),
    currentTimeMillisUnsafe: () => start + passed,
    monotonicTimeNanosUnsafe: () => BigInt(passed * 1e6)
  })
  const set = (by: number) =>
    clock.follow({ serverMillis: start + passed + by, began: passed, ended: passed })
  const pass = (millis: number) => {
    passed += millis
  }
  return { clock, pass, set }
}

const services = Verifications.layer.pipe(
  Layer.provide(Failures.layer),
  Layer.provide(IdentitySettings.layer),
  Layer.provide(Settings.layer),
  Layer.provide(
    Layer.effect(
      Buckets,
      Effect.map(makeDiskBuckets, ({ buckets }) => buckets)
    )
  ),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({})))
)
const asker = { address: "192.0.2.1", patienceMillis: 1_000 }

it.effect("no verdict is used for longer, and a token ends when its time comes", () => {
  const { clock, pass, set } = serviceClock()
  let verdict: ReturnType<typeof known> | typeof invalidToken = known("anna")
  return Effect.gen(function* () {
    const verified = (yield* Verifications).make({
      policy: "token",
      context: "",
      lifetimeMillis: 500,
      isShared: false,
      verify: () => Effect.sync(() => verdict)
    })
    const tagOf = (token: string) => Effect.map(verified(token, asker), ({ _tag }) => _tag)
    assert.strictEqual(yield* tagOf("revoked"), "Known")
    set(-hour)
    verdict = invalidToken
    assert.strictEqual(yield* tagOf("revoked"), "Known")
    pass(500)
    assert.strictEqual(yield* tagOf("revoked"), "Invalid")
    set(-2 * hour)
    verdict = known("anna")
    pass(10_000)
    assert.strictEqual(yield* tagOf("revoked"), "Known")

    verdict = { ...known("anna"), expiresAt: clock.currentTimeMillisUnsafe() + hour }
    assert.strictEqual(yield* tagOf("ends"), "Known")
    verdict = invalidToken
    set(0)
    assert.strictEqual(yield* tagOf("ends"), "Invalid")
  }).pipe(Effect.provide(services), Effect.provideService(Clock.Clock, clock))
})

it.effect("a failed login holds up the next one of its address for a minute at most", () => {
  const { clock, pass, set } = serviceClock()
  return Effect.gen(function* () {
    const { admit, failed } = makeAttempts(1)
    yield* failed("192.0.2.1")
    set(-hour)
    assert.strictEqual((yield* Effect.flip(admit("192.0.2.1"))).waitMillis, 60_000)
    pass(60_000)
    yield* admit("192.0.2.1")
  }).pipe(Effect.provideService(Clock.Clock, clock))
})
