// Further requests of one attempt, where no running service comes in a test: tokens grow old.
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { TestClock } from "effect/testing"
import webpush from "web-push"
import { moment } from "#clock/clocks.ts"
import { PushClient, type Received, type Request } from "#delivery/push/post.ts"
import { tryFurther } from "#delivery/push/send.ts"
import { Vapid, VapidKeys } from "#delivery/push/vapid.ts"
import { makeOrigins, Origins } from "#delivery/push-service/origins.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import { PushServices } from "#delivery/push-service/push-services.ts"
import { EventLog } from "#nats/stream/event-log.ts"

const { privateKey, publicKey } = webpush.generateVAPIDKeys()
const origins = Layer.succeed(
  Origins,
  makeOrigins((host) => host)
)
const keys = Layer.succeed(VapidKeys, {
  keys: [{ publicKey, privateKey: Redacted.make(privateKey) }],
  subject: "mailto:ops@example.com"
})
const services = Layer.mergeAll(
  Vapid.layer.pipe(Layer.provide(Layer.merge(keys, origins))),
  Layer.succeed(PushClient, { post: () => Effect.die("another request") }),
  Layer.succeed(PushServices, {} as PushServices["Service"]),
  Layer.succeed(EventLog, {} as EventLog["Service"])
)
const origin = "https://push.example.com"

describe("a refusal of a token that is an hour old", () => {
  it.effect("is the result where it came too late; the next attempt has a new token", () =>
    Effect.gen(function* () {
      const vapid = yield* Vapid
      const pushService = new PushService(origin, publicKey, {
        pushesUnderWayMax: 8,
        hasHeadroom: () => true,
        breakerOpenMillis: 60_000,
        retryBaseMillis: 10_000
      })
      const refused = yield* vapid.authorization(origin, publicKey)
      yield* TestClock.adjust("2 hours")
      const at = yield* moment
      const lastTryAt = at.monotonic - 1
      const headers = { authorization: refused }
      const request = { pushService, key: publicKey, expiresAt: Infinity, lastTryAt, headers }
      const first: Received = {
        response: { status: 403, headers: {}, body: "", waitedMillis: 0 },
        result: { kind: "failed", reason: "credentials" },
        at,
        pushService
      }
      const last = yield* tryFurther(request as unknown as Request, first)
      assert.strictEqual(last, first)
      assert.notStrictEqual(yield* vapid.authorization(origin, publicKey), refused)
    }).pipe(Effect.provide(services))
  )
})
