// Who we are to push services: one signed token for each of them, kept for hours and never longer than a day.
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import webpush from "web-push"
import { checkVapid } from "#cli/vapid-check.ts"
import { Vapid, VapidKeys } from "#delivery/push/vapid.ts"

const { privateKey, publicKey } = webpush.generateVAPIDKeys()
const subject = "mailto:ops@example.com"
const keys = Layer.succeed(VapidKeys, { publicKey, privateKey: Redacted.make(privateKey), subject })
const provided = <A, E>(effect: Effect.Effect<A, E, Vapid>) => Effect.provide(effect, Vapid.layer.pipe(Layer.provide(keys)))

const fcm = "https://fcm.googleapis.com"
const mozilla = "https://updates.push.services.mozilla.com"
const hourMillis = 3_600_000

const check = Effect.fnUntraced(function* (header: string, audience: string) {
  return checkVapid(header, { audience, nowMillis: yield* Clock.currentTimeMillis, applicationServerKey: publicKey })
})
const claimsOf = (header: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(header.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>

describe("the Authorization header", () => {
  it.effect("is signed by our key for the origin that is called, with our contact", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        for (const origin of [fcm, "https://push.example.net:8443"]) {
          const header = yield* authorization(origin)
          assert.deepStrictEqual(yield* check(header, origin), { ok: true, applicationServerKey: publicKey, subject })
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
        const first = yield* authorization(fcm)
        assert.notStrictEqual(yield* authorization(mozilla), first)
        for (let passed = 0; passed < 5; passed++) {
          yield* TestClock.adjust("1 hour")
          assert.strictEqual(yield* authorization(fcm), first)
        }
        yield* TestClock.adjust("1 hour")
        const second = yield* authorization(fcm)
        assert.notStrictEqual(second, first)
        assert.deepInclude(yield* check(second, fcm), { ok: true })
        yield* TestClock.adjust("5 hours")
        assert.strictEqual(yield* authorization(fcm), second)
      })
    )
  )

  it.effect("expires more than five hours after its last use and never more than 24 hours ahead", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        for (let minute = 0; minute < 26 * 60; minute += 20) {
          const left = Number(claimsOf(yield* authorization(fcm))["exp"]) * 1000 - (yield* Clock.currentTimeMillis)
          assert.isAbove(left, 5 * hourMillis)
          assert.isAtMost(left, 24 * hourMillis)
          yield* TestClock.adjust("20 minutes")
        }
      })
    )
  )

  it.effect("is made for any number of origins without keeping them all", () =>
    provided(
      Effect.gen(function* () {
        const { authorization } = yield* Vapid
        for (let i = 0; i < 1_001; i++) {
          const origin = `https://h${i}.example.net`
          assert.strictEqual(claimsOf(yield* authorization(origin))["aud"], origin)
        }
        assert.deepInclude(yield* check(yield* authorization(fcm), fcm), { ok: true })
      })
    )
  )
})
