// The simulator against the real `web-push` library: correct pushes arrive decrypted, and each
// mistake gets its status.
import { assert, describe, it } from "@effect/vitest"
import { Agent, request } from "undici"
import webPush from "web-push"
import { startPushService } from "#test/push-service.ts"
import {
  encryptedWithVapidKey,
  flipped,
  forged,
  type Push,
  post,
  pushFor,
  text,
  vapid,
  withHeader
} from "#test/pushes.ts"
import { testCertificate } from "#test/tls.ts"
import type { SubscriptionJson } from "#test/user-agent.ts"

describe("a right push", () => {
  it("arrives decrypted, once, with its headers", async () => {
    await using service = await startPushService()
    const agent = service.subscribe({ applicationServerKey: vapid.publicKey })
    const options = { topic: "news", urgency: "high" } as const
    const answer = await post(
      agent.subscription.endpoint,
      pushFor(agent.subscription, text, options)
    )
    assert.strictEqual(answer.status, 201)
    assert.deepStrictEqual(
      agent.received.map(({ text }) => text),
      [text]
    )
    assert.deepInclude(agent.received[0]?.headers, { ttl: "60", topic: "news", urgency: "high" })
    assert.deepStrictEqual(service.counts, { requests: 1, total: 1, distinct: 1, duplicates: 0 })
    assert.deepStrictEqual(service.faults, [])
  })

  it("may have no payload, or the largest that fits into 4096 bytes", async () => {
    await using service = await startPushService()
    const agent = service.subscribe()
    const largest = pushFor(agent.subscription, "x".repeat(3993))
    assert.strictEqual(largest.body?.length, 4096)
    assert.strictEqual((await post(agent.subscription.endpoint, largest)).status, 201)
    assert.strictEqual(
      (await post(agent.subscription.endpoint, pushFor(agent.subscription, ""))).status,
      201
    )
    assert.deepStrictEqual(
      agent.received.map(({ payload }) => payload?.length),
      [3993, undefined]
    )
    assert.deepStrictEqual(service.faults, [])
  })

  it("goes over TLS to senders that trust the test certificate only", async () => {
    const trusting = new Agent({ connect: { ca: testCertificate().cert } })
    for (const host of ["localhost", "127.0.0.1"] as const) {
      await using service = await startPushService({ tls: true, host })
      const { subscription, received } = service.subscribe()
      assert.match(subscription.endpoint, new RegExp(`^https://${host}:`))
      assert.strictEqual(
        (await post(subscription.endpoint, pushFor(subscription), trusting)).status,
        201
      )
      assert.strictEqual(received[0]?.text, text)
      const refusal = await post(subscription.endpoint, pushFor(subscription)).catch(
        (error) => error.code
      )
      assert.strictEqual(refusal, "DEPTH_ZERO_SELF_SIGNED_CERT")
    }
  })
})

describe("a wrong push", () => {
  const key = vapid.publicKey
  const other = webPush.generateVAPIDKeys()
  type Wrong = readonly [
    name: string,
    status: number,
    change: (push: Push, to: SubscriptionJson, origin: string) => Push
  ]
  const authorization =
    (make: (origin: string) => string): Wrong[2] =>
    (push, _, origin) =>
      withHeader(push, "authorization", make(origin))
  const header =
    (name: string, value?: string): Wrong[2] =>
    (push) =>
      withHeader(push, name, value)
  const wrongs: ReadonlyArray<Wrong> = [
    ["a flipped byte of the text", 400, (push) => flipped(push, -20)],
    ["a flipped byte of the tag", 400, (push) => flipped(push, -1)],
    [
      "encryption for another subscription's keys",
      400,
      (_, to) => pushFor({ ...to, keys: { ...to.keys, auth: "AAAAAAAAAAAAAAAAAAAAAA" } })
    ],
    ["a body of noise", 400, (push) => ({ ...push, body: Buffer.alloc(200, 7) })],
    ["no Authorization", 401, header("authorization")],
    ["another scheme", 401, header("authorization", "WebPush abc")],
    ["another VAPID key", 403, authorization((origin) => forged({ aud: origin }, other))],
    [
      "a signature by another key",
      403,
      authorization((origin) => forged({ aud: origin }, other).replace(/k=.*/, `k=${key}`))
    ],
    [
      "the audience of another port",
      403,
      authorization(() => forged({ aud: "http://127.0.0.1:1" }))
    ],
    ["an audience with a path", 403, authorization((origin) => forged({ aud: `${origin}/` }))],
    [
      "an expired token",
      403,
      authorization((origin) => forged({ aud: origin, expiresInSeconds: -1 }))
    ],
    [
      "a token for more than 24 hours",
      403,
      authorization((origin) => forged({ aud: origin, expiresInSeconds: 24 * 3600 + 5 }))
    ],
    ["an algorithm other than ES256", 403, authorization((aud) => forged({ aud, alg: "ES384" }))],
    ["a contact that is no address", 403, authorization((aud) => forged({ aud, sub: "ops" }))],
    [
      "the VAPID key as the sender's encryption key",
      400,
      (push, to) => ({ ...push, body: encryptedWithVapidKey(to) })
    ],
    ["no TTL", 400, header("ttl")],
    ["a negative TTL", 400, header("ttl", "-1")],
    ["a TTL that is no integer", 400, header("ttl", "1.5")],
    ["a body of 4097 bytes", 413, (_, to) => pushFor(to, "x".repeat(3994))],
    ["a topic outside the alphabet", 400, header("topic", "a b")],
    ["a topic of 33 characters", 400, header("topic", "a".repeat(33))],
    ["an unknown urgency", 400, header("urgency", "urgent")],
    ["another content encoding", 400, header("content-encoding", "aesgcm")],
    ["no content encoding", 400, header("content-encoding")]
  ]

  for (const [name, status, change] of wrongs) {
    it(`is refused with ${status} for ${name}, and taken without it`, async () => {
      await using service = await startPushService()
      const agent = service.subscribe({ applicationServerKey: key })
      const { endpoint } = agent.subscription
      // The same forger makes the right token, so that a refusal is about the one change.
      const right = withHeader(
        pushFor(agent.subscription),
        "authorization",
        forged({ aud: service.origin })
      )
      assert.strictEqual(
        (await post(endpoint, change(right, agent.subscription, service.origin))).status,
        status
      )
      assert.deepStrictEqual([agent.received.length, service.counts.total], [0, 0])
      assert.deepStrictEqual(
        service.faults.map((fault) => [fault.endpoint, fault.status]),
        [[endpoint, status]]
      )
      assert.strictEqual((await post(endpoint, right)).status, 201)
      assert.strictEqual(agent.received.length, 1)
    })
  }

  it("is refused: 404 unknown endpoint, 405 another method, 410 after unsubscribing", async () => {
    await using service = await startPushService()
    const agent = service.subscribe()
    const { endpoint } = agent.subscription
    const push = pushFor(agent.subscription)
    assert.strictEqual((await post(`${endpoint}x`, push)).status, 404)
    assert.strictEqual((await request(endpoint, { method: "PUT", ...push })).statusCode, 405)
    agent.unsubscribe()
    assert.strictEqual((await post(endpoint, push)).status, 410)
    assert.strictEqual(
      (await post(endpoint, withHeader(push, "authorization", "vapid"))).status,
      401
    )
    assert.strictEqual(agent.received.length, 0)
  })
})
