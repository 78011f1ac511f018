// A push service that does not respond, and what a worker publishes about it to the others.
import { assert, describe, it } from "@effect/vitest"
import type { ResponseResult } from "#delivery/attempt.ts"
import { decodeGossip } from "#delivery/push-service/gossip.ts"
import { PushService } from "#delivery/push-service/push-service.ts"
import type { RetryReason } from "#domain/reason.ts"
import { pushesAt } from "#test/judged-pushes.ts"

const now = 1_800_000_000_000
const minute = 60_000
const pushTo = pushesAt(now)
const someone = pushTo("someone")

describe("a push service that does not respond", () => {
  const busy: ResponseResult = { kind: "failed", reason: "server-error" }
  const pushServiceOf = () =>
    new PushService("https://push.example.com", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const failing = (pushService: ReturnType<typeof pushServiceOf>, reason: RetryReason) =>
    Array.from({ length: 8 }, (_, i) => pushService.failed(reason, pushTo(`s${i}`), now)).flat()

  it("defers pushes without gossip, logs once, and goes on with the first response", () => {
    const pushService = pushServiceOf()
    assert.deepEqual(failing(pushService, "timeout"), [
      { level: "warn", text: "push.example.com cannot be reached (timeout): pushes to it wait" }
    ])
    assert.deepEqual(pushService.deferral(someone, now), {
      kind: "deferred",
      reason: "unreachable",
      waitMillis: 10_000
    })
    assert.isUndefined(pushService.takeGossip("w", now))
    const { notices } = pushService.judge(busy, pushTo("s"), 500, now + 10_000)
    assert.deepEqual(notices, [{ level: "info", text: "push.example.com is reached again" }])
    assert.isUndefined(pushService.deferral(someone, now + 10_000))
  })

  it("says so once where it is one subscription's pushes, and holds none back", () => {
    const pushService = pushServiceOf()
    const push = pushTo("s")
    const notices = Array.from({ length: 8 }, () =>
      pushService.failed("connection-refused", push, now)
    ).flat()
    assert.deepEqual(notices, [
      {
        level: "warn",
        text: "push.example.com cannot be reached (connection-refused): its pushes are tried again"
      }
    ])
    assert.isUndefined(pushService.deferral(someone, now))
    assert.deepEqual(
      pushService.judge({ kind: "delivered", reason: "accepted" }, push, 201, now).notices,
      [{ level: "info", text: "push.example.com is reached again" }]
    )
  })

  it("goes on for names that do not exist, and for addresses that may not be called", () => {
    const pushService = pushServiceOf()
    assert.deepEqual(failing(pushService, "unknown-host"), [])
    assert.deepEqual(failing(pushService, "address-not-allowed"), [])
    assert.isUndefined(pushService.deferral(someone, now))
    assert.strictEqual(failing(pushService, "tls")[0]?.level, "error")
  })
})

describe("the gossip about a push service", () => {
  const throttled: ResponseResult = {
    kind: "failed",
    reason: "throttled",
    retryAfterMillis: 30_000
  }
  const credentials: ResponseResult = { kind: "failed", reason: "credentials" }
  const pushServiceOf = () =>
    new PushService("https://push.example.com", "k1", {
      pushesUnderWayMax: 8,
      hasHeadroom: () => true,
      breakerOpenMillis: minute,
      retryBaseMillis: 10_000
    })
  const push = (i: number) => pushTo(`user${i}`)
  const nothing = {
    v: 1 as const,
    worker: "w",
    origin: "https://push.example.com",
    key: "k1",
    answers: 0,
    gone: 0,
    holds: false
  }

  it("is read in its version, also with members that only a newer process knows", () => {
    const isRead = (body: object) => decodeGossip(body)._tag === "Success"
    assert.deepEqual(
      [nothing, { ...nothing, more: true }, { ...nothing, v: nothing.v + 1 }].map(isRead),
      [true, true, false]
    )
  })

  it("is nothing while there is nothing to tell", () => {
    assert.isUndefined(pushServiceOf().takeGossip("w", now))
    assert.isFalse(pushServiceOf().isUrgent)
  })

  it("stops and slows the others once; the gossip of a stop repeats ever shorter times", () => {
    const [here, there] = [pushServiceOf(), pushServiceOf()]
    for (let i = 0; i < 5; i++) here.judge(throttled, push(i), 429, now)
    assert.isTrue(here.isUrgent)
    const news = here.takeGossip("w", now)!
    assert.deepEqual(news, { ...nothing, answers: 5, window: 4, closedMillis: 30_000 })
    assert.deepEqual(
      there.merge(news, now).map(({ level }) => level),
      ["warn"]
    )
    assert.deepEqual(there.deferral(someone, now), {
      kind: "deferred",
      reason: "push-service-throttled",
      waitMillis: 30_000
    })
    assert.strictEqual(there.stateAt(now).window, 4)
    there.merge(news, now)
    assert.strictEqual(there.stateAt(now).window, 4, "who is told twice is not slower")
    assert.isUndefined(there.takeGossip("v", now), "what one was told is not told on")
    assert.deepEqual(here.takeGossip("w", now + 10_000), { ...nothing, closedMillis: 20_000 })
  })

  it("opens and closes the others' breakers", () => {
    const [here, there] = [pushServiceOf(), pushServiceOf()]
    here.judge(credentials, push(1), 403, now)
    const news = here.takeGossip("w", now)!
    assert.deepEqual(news, { ...nothing, answers: 1, openMillis: minute })
    there.merge(news, now)
    assert.strictEqual(there.stateAt(now).credentials, "open")
    assert.isUndefined(there.takeGossip("v", now))
    assert.deepEqual(here.takeGossip("w", now + 20_000), { ...nothing, openMillis: 40_000 })
    there.judge({ kind: "delivered", reason: "accepted" }, push(2), 201, now + minute)
    const better = there.takeGossip("v", now + minute)!
    assert.deepEqual(better, { ...nothing, worker: "v", answers: 1, openMillis: 0, reached: 2 })
    here.merge(better, now + minute)
    assert.strictEqual(here.stateAt(now + minute).credentials, "closed")
    assert.isUndefined(here.takeGossip("w", now + minute))
  })

  it("makes the others hold, whatever was lost before", () => {
    const [here, there] = [pushServiceOf(), pushServiceOf()]
    for (let i = 0; i < 60; i++) here.judge({ kind: "gone", reason: "gone" }, push(i), 410, now)
    assert.isTrue(here.isUrgent)
    here.takeGossip("w", now)
    const again = here.takeGossip("w", now + 2_000)!
    assert.deepEqual(again, { ...nothing, holds: true })
    assert.deepEqual(
      there.merge(again, now).map(({ level }) => level),
      ["warn"]
    )
    assert.strictEqual(
      there.judge({ kind: "gone", reason: "gone" }, push(1), 410, now).judged.kind,
      "deferred"
    )
  })
})
