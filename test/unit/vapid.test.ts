// The Authorization header of pushes: one signed token per push service, used for hours, never
// longer than a day.
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import webpush from "web-push"
import { checkVapid } from "#cli/listen/push-receiver.ts"
import { Vapid, VapidKeys } from "#delivery/push/vapid.ts"
import { makeOrigins, Origins } from "#delivery/push-service/origins.ts"

const pairs = [
  webpush.generateVAPIDKeys(),
  webpush.generateVAPIDKeys(),
  webpush.generateVAPIDKeys(),
  webpush.generateVAPIDKeys()
]
const [oldest, retired, former, current] = pairs.map(({ publicKey }) => publicKey) as [
  string,
  string,
  string,
  string
]
const publicKey = current
const subject = "mailto:ops@example.com"
const origins = Layer.succeed(
  Origins,
  makeOrigins(() => "all")
)
const keys = Layer.succeed(VapidKeys, {
  keys: pairs.map((pair) => ({
    publicKey: pair.publicKey,
    privateKey: pair.publicKey === retired ? undefined : Redacted.make(pair.privateKey)
  })),
  subject
})
const provided = <A, E>(effect: Effect.Effect<A, E, Vapid>) =>
  Effect.provide(effect, Vapid.layer.pipe(Layer.provide(Layer.merge(keys, origins))))

const fcm = "https://fcm.googleapis.com"
const mozilla = "https://updates.push.services.mozilla.com"
const hourMillis = 3_600_000

const check = Effect.fnUntraced(function* (
  header: string,
  audience: string,
  applicationServerKey = publicKey
) {
  const nowMillis = yield* Clock.currentTimeMillis
  return yield* Effect.promise(() =>
    checkVapid(header, { audience, nowMillis, applicationServerKey })
  )
})
const claimsOf = (header: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(header.split(".")[1] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >

describe("the Authorization header", () => {
  it.effect("is signed by our key for the origin that is called, with our contact", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        for (const origin of [fcm, "https://push.example.net:8443"]) {
          const header = yield* authorization(origin, publicKey)
          assert.deepStrictEqual(yield* check(header, origin), {
            ok: true,
            applicationServerKey: publicKey,
            subject
          })
          assert.strictEqual(claimsOf(header)["aud"], origin)
          assert.deepInclude(yield* check(header, mozilla), { ok: false, status: 403 })
        }
      })
    )
  )

  it.effect("is the same for five hours, different for each origin, and another after six", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        const first = yield* authorization(fcm, publicKey)
        assert.notStrictEqual(yield* authorization(mozilla, publicKey), first)
        for (let passed = 0; passed < 5; passed++) {
          yield* TestClock.adjust("1 hour")
          assert.strictEqual(yield* authorization(fcm, publicKey), first)
        }
        yield* TestClock.adjust("1 hour")
        const second = yield* authorization(fcm, publicKey)
        assert.notStrictEqual(second, first)
        assert.deepInclude(yield* check(second, fcm), { ok: true })
        yield* TestClock.adjust("5 hours")
        assert.strictEqual(yield* authorization(fcm, publicKey), second)
      })
    )
  )

  it.effect(
    "expires more than five hours after its last use and never more than 24 hours ahead",
    () =>
      provided(
        Effect.gen(function* () {
          const { authorization } = yield* Vapid
          for (let minute = 0; minute < 26 * 60; minute += 20) {
            const left =
              Number(claimsOf(yield* authorization(fcm, publicKey))["exp"]) * 1000 -
              (yield* Clock.currentTimeMillis)
            assert.isAbove(left, 5 * hourMillis)
            assert.isAtMost(left, 24 * hourMillis)
            yield* TestClock.adjust("20 minutes")
          }
        })
      )
  )

  it.effect("is the same for an origin in use, whatever number of other origins is made up", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        const first = yield* authorization(fcm, publicKey)
        const made: Array<string> = []
        for (let i = 0; i < 2_000; i++) {
          const origin = `https://h${i}.example.net`
          made.push(yield* authorization(origin, publicKey))
          assert.strictEqual(claimsOf(made[i]!)["aud"], origin)
          if (i % 100 === 0) assert.strictEqual(yield* authorization(fcm, publicKey), first)
        }
        assert.notStrictEqual(yield* authorization("https://h0.example.net", publicKey), made[0])
      })
    )
  )

  it.effect("is signed anew once an hour, however often it is refused", () =>
    provided(
      Effect.gen(function* () {
        const { authorization, renewed } = yield* Vapid
        const first = yield* authorization(fcm, publicKey)
        const headers = new Set<string>()
        for (let minute = 0; minute < 180; minute++) {
          const refused = yield* authorization(fcm, publicKey)
          headers.add((yield* renewed(fcm, publicKey, refused)) ?? refused)
          yield* TestClock.adjust("1 minute")
        }
        assert.strictEqual(headers.size, 3)
        assert.isTrue(headers.has(first))
      })
    )
  )

  it.effect("is signed anew where the clock was set back after it was made", () =>
    provided(
      Effect.gen(function* () {
        const { authorization, renewed } = yield* Vapid
        yield* TestClock.setTime(30 * hourMillis)
        const refused = yield* authorization(fcm, publicKey)
        yield* TestClock.setTime(5 * hourMillis)
        assert.notStrictEqual((yield* renewed(fcm, publicKey, refused)) ?? refused, refused)
      })
    )
  )
})

describe("a set of keys", () => {
  it.effect(
    "signs with the key that is asked for, and never gives out one key's token for another",
    () =>
      provided(
        Effect.gen(function* () {
          const { authorization } = yield* Vapid
          for (const key of [current, oldest, current, former]) {
            assert.deepStrictEqual(yield* check(yield* authorization(fcm, key), fcm, key), {
              ok: true,
              applicationServerKey: key,
              subject
            })
          }
        })
      )
  )

  it.effect("renews the token of one key only", () =>
    provided(
      Effect.gen(function* () {
        const { authorization, renewed } = yield* Vapid
        const [ofCurrent, ofFormer] = [
          yield* authorization(fcm, current),
          yield* authorization(fcm, former)
        ]
        yield* TestClock.adjust("1 hour")
        const fresh = yield* renewed(fcm, former, ofFormer)
        assert.isDefined(fresh)
        assert.notStrictEqual(fresh, ofFormer)
        assert.strictEqual(yield* renewed(fcm, former, ofFormer), fresh)
        assert.strictEqual(yield* authorization(fcm, current), ofCurrent)
      })
    )
  )

  it.effect(
    "takes the oldest for a subscription whose key was not noted, and else the one that was",
    () =>
      provided(
        Effect.gen(function* () {
          const { keyOf } = yield* Vapid
          assert.strictEqual(keyOf({}), oldest)
          assert.strictEqual(keyOf({ vapidKey: former }), former)
          assert.strictEqual(keyOf({ vapidKey: "another" }), "another")
        })
      )
  )

  it.effect("says why nothing can be signed", () =>
    provided(
      Effect.gen(function* () {
        const { fault } = yield* Vapid
        assert.deepStrictEqual([oldest, retired, former, current, "another"].map(fault), [
          undefined,
          "retired",
          undefined,
          undefined,
          "unknown"
        ])
      })
    )
  )

  it.effect(
    "tries all others in place of a wrong one, those before it first; never a retired one",
    () =>
      provided(
        Effect.gen(function* () {
          const { othersThan } = yield* Vapid
          assert.deepStrictEqual([current, former, oldest].map(othersThan), [
            [former, oldest],
            [oldest, current],
            [former, current]
          ])
        })
      )
  )
})
