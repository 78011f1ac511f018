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
const origin = "https://push.example.com"
const services = (post: PushClient["Service"]["post"]) =>
  Layer.mergeAll(
    Vapid.layer.pipe(Layer.provide(Layer.merge(keys, origins))),
    Layer.succeed(PushClient, { post }),
    Layer.succeed(PushServices, {} as PushServices["Service"]),
    Layer.succeed(EventLog, {} as EventLog["Service"])
  )

/** A request whose token, two hours old, was refused. `leftMillis`: another may begin so long. */
const refusedRequest = Effect.fnUntraced(function* (leftMillis: number) {
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
  const lastTryAt = at.monotonic + leftMillis
  const headers = { authorization: refused }
  const request = { pushService, key: publicKey, expiresAt: Infinity, lastTryAt, headers }
  const first: Received = {
    response: { status: 403, headers: {}, body: "", waitedMillis: 0 },
    result: { kind: "failed", reason: "credentials" },
    at,
    pushService
  }
  return { first, refused, request: request as unknown as Request }
})

describe("a refusal of a token that is an hour old", () => {
  it.effect("is the result where it came too late; the next attempt has a new token", () =>
    Effect.gen(function* () {
      const { first, refused, request } = yield* refusedRequest(-1)
      assert.strictEqual(yield* tryFurther(request, first), first)
      assert.notStrictEqual(yield* (yield* Vapid).authorization(origin, publicKey), refused)
    }).pipe(Effect.provide(services(() => Effect.die("another request"))))
  )

  it.effect("is tried with a new token, also by a probe of the open breaker", () => {
    const tokens: Array<string | undefined> = []
    return Effect.gen(function* () {
      const { first, refused, request } = yield* refusedRequest(1_000)
      const { pushService } = request
      const { monotonic } = first.at
      const push = { subscription: "s", user: "u", generation: 1, broadcast: 1, saidGone: false }
      const times = { acceptedAt: monotonic, storedAt: monotonic, sentAt: monotonic }
      pushService.judge(first.result, { ...push, ...times }, 403, monotonic)
      assert.strictEqual(pushService.stateAt(monotonic).credentials, "open")
      const last = yield* tryFurther(request, first)
      assert.strictEqual(typeof last === "object" && last.result.kind, "delivered")
      assert.lengthOf(tokens, 1)
      assert.notStrictEqual(tokens[0], refused)
    }).pipe(
      Effect.provide(
        services(({ headers }) => {
          tokens.push(headers["authorization"])
          return Effect.succeed({ status: 201, headers: {}, body: "", waitedMillis: 0 })
        })
      )
    )
  })
})
