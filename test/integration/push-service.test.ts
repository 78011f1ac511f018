// The simulator against the real `web-push` library: correct pushes arrive decrypted, and each
// mistake gets its status.
import { createECDH, sign } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import ece from "http_ece"
import { Agent, request } from "undici"
import webPush from "web-push"
import { startPushService } from "#test/push-service.ts"
import { testCertificate } from "#test/tls.ts"
import type { SubscriptionJson } from "#test/user-agent.ts"

const vapid = webPush.generateVAPIDKeys()
const vapidDetails = { subject: "mailto:ops@example.com", ...vapid }
const text = '{"hello":"wörld"}'

interface Push {
  readonly headers: Record<string, string>
  readonly body: Buffer | null
}

const withHeader = (push: Push, name: string, value: string | undefined): Push => {
  const { [name]: _, ...headers } = push.headers
  return { ...push, headers: value === undefined ? headers : { ...headers, [name]: value } }
}

const pushFor = (
  to: SubscriptionJson,
  payload: string | undefined = text,
  options: webPush.RequestOptions = {}
): Push => {
  const { headers, body } = webPush.generateRequestDetails(to, payload, {
    vapidDetails,
    TTL: 60,
    ...options
  })
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
  // undici counts the bytes itself, and some tests change them.
  return withHeader({ headers: Object.fromEntries(named), body }, "content-length", undefined)
}

const post = async (
  endpoint: string,
  { headers, body }: Push,
  dispatcher = new Agent(),
  timeoutMillis = 5000
) => {
  const sent = {
    method: "POST",
    headers,
    body,
    dispatcher,
    headersTimeout: timeoutMillis,
    bodyTimeout: timeoutMillis
  } as const
  const answer = await request(endpoint, sent)
  return { status: answer.statusCode, headers: answer.headers, body: answer.body }
}

const flipped = (push: Push, at: number): Push => {
  const body = Buffer.from(push.body ?? [])
  body[body.length + at] = (body[body.length + at] ?? 0) ^ 1
  return { ...push, body }
}

interface Token {
  readonly aud: string
  readonly expiresInSeconds?: number
  readonly alg?: string
  readonly sub?: string
}

/** A VAPID header signed here, because web-push refuses to make wrong ones. */
const forged = (
  { aud, expiresInSeconds = 60, alg = "ES256", sub = "mailto:ops@example.com" }: Token,
  keys = vapid
): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
  const exp = Math.floor(Date.now() / 1000) + expiresInSeconds
  const content = `${part({ typ: "JWT", alg })}.${part({ aud, exp, sub })}`
  const point = Buffer.from(keys.publicKey, "base64url")
  const [x, y] = [point.toString("base64url", 1, 33), point.toString("base64url", 33)]
  const key = {
    format: "jwk",
    key: { kty: "EC", crv: "P-256", x, y, d: keys.privateKey },
    dsaEncoding: "ieee-p1363"
  } as const
  const signature = sign("sha256", Buffer.from(content), key).toString("base64url")
  return `vapid t=${content}.${signature}, k=${keys.publicKey}`
}

/** A body whose sender key is the VAPID key itself. */
const encryptedWithVapidKey = ({ keys: { p256dh, auth } }: SubscriptionJson): Buffer => {
  const privateKey = createECDH("prime256v1")
  privateKey.setPrivateKey(vapid.privateKey, "base64url")
  const params = {
    version: "aes128gcm",
    privateKey,
    dh: Buffer.from(p256dh, "base64url"),
    authSecret: Buffer.from(auth, "base64url")
  } as const
  return ece.encrypt(Buffer.from(text), params)
}

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
