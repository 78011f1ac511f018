// What a response of a push service means: one row for each known response, and properties of all
// of them.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import type { ResponseResult } from "#delivery/attempt.ts"
import { classify } from "#delivery/push/post.ts"
import type { PushResponse } from "#delivery/push/transport/exchange.ts"

const now = Date.UTC(2026, 10, 20, 12, 0, 0)
const fcm = "fcm.googleapis.com"
const wns = "db5p.notify.windows.com"

interface Case {
  readonly host?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

const judge = (
  status: number,
  { body = "", headers = {}, host = fcm }: Case = {}
): ResponseResult => classify({ status, headers, body }, host, now)

const mozilla = (code: number, errno: number, message: string) =>
  JSON.stringify({ code, errno, error: "Error", message })
const apple = (reason: string) => JSON.stringify({ reason })

type Row = readonly [
  status: number,
  expected: ResponseResult["kind"],
  reason: ResponseResult["reason"],
  given?: Case
]

const rows: ReadonlyArray<Row> = [
  ...[200, 201, 202, 203, 204, 226].map((status): Row => [status, "delivered", "accepted"]),

  [404, "gone", "gone", { body: "the endpoint should look like https://fcm.googleapis.com/wp/" }],
  [404, "gone", "gone", { body: mozilla(404, 102, "Invalid token") }],
  [410, "gone", "gone", { body: "push subscription has unsubscribed or expired.\n" }],
  [410, "gone", "gone", { body: mozilla(410, 106, "No such subscription") }],
  [410, "gone", "gone", { body: apple("Unregistered") }],

  [400, "failed", "key-mismatch", { body: apple("VapidPkHashMismatch") }],
  [403, "failed", "key-mismatch", { body: apple("VapidPkHashMismatch") }],
  [
    403,
    "failed",
    "key-mismatch",
    {
      body:
        "the VAPID credentials in the authorization header do not correspond to the credentials " +
        "used to create the subscriptions."
    }
  ],
  [403, "failed", "key-mismatch", { body: "MismatchSenderId" }],
  [
    403,
    "failed",
    "key-mismatch",
    { body: "the key in the authorization header does not correspond to the sender ID" }
  ],
  [401, "failed", "key-mismatch", { body: mozilla(401, 109, "VAPID public key mismatch") }],

  [401, "failed", "credentials"],
  [
    401,
    "failed",
    "credentials",
    { body: mozilla(401, 109, "Request did not validate missing authorization header") }
  ],
  [401, "failed", "credentials", { body: "invalid push subscription endpoint" }],
  [401, "failed", "credentials", { body: "do not correspond" }],
  [403, "failed", "credentials"],
  [403, "failed", "credentials", { body: "permission denied: invalid JWT provided" }],
  [403, "failed", "credentials", { body: apple("BadJwtToken") }],
  [403, "failed", "credentials", { body: apple("BadVapidPublicKey") }],
  [403, "failed", "credentials", { body: apple("ExpiredToken") }],
  [400, "failed", "credentials", { body: "<TITLE>UnauthorizedRegistration</TITLE>" }],
  [400, "failed", "credentials", { body: apple("BadAuthorizationHeader") }],

  [
    413,
    "dead",
    "too-large",
    { body: mozilla(413, 104, "This message is intended for a constrained device") }
  ],
  [400, "dead", "bad-topic", { body: apple("BadWebPushTopic") }],
  [400, "dead", "bad-topic", { body: mozilla(400, 113, "Invalid Topic header") }],
  [
    400,
    "dead",
    "bad-ttl",
    {
      host: wns,
      headers: { "x-wns-error-description": "Ttl value conflicts with X-WNS-Cache-Policy" }
    }
  ],

  [400, "dead", "refused"],
  [400, "dead", "refused", { body: mozilla(400, 111, "Missing TTL") }],
  [400, "dead", "refused", { body: "do not correspond" }],
  ...[405, 411, 414, 415, 422, 431, 501, 505].map((status): Row => [status, "dead", "refused"]),

  [429, "failed", "throttled"],
  [429, "failed", "throttled", { body: apple("TooManyRequests") }],
  [406, "failed", "throttled", { host: wns }],
  [406, "dead", "refused", { host: fcm }],
  [406, "dead", "refused", { host: "notify.windows.com.example.org" }],
  [200, "failed", "throttled", { host: wns, headers: { "x-wns-status": "appthrottled" } }],
  [
    201,
    "failed",
    "throttled",
    { host: wns, headers: { "x-wns-notificationstatus": "channelThrottled" } }
  ],
  [410, "failed", "throttled", { host: wns, headers: { "x-wns-status": "channelthrottled" } }],
  [201, "delivered", "accepted", { host: wns, headers: { "x-wns-status": "received" } }],
  [200, "failed", "dropped", { host: wns, headers: { "x-wns-status": "dropped" } }],
  [
    201,
    "failed",
    "dropped",
    { host: wns, headers: { "x-wns-status": "received", "x-wns-notificationstatus": "Dropped" } }
  ],
  [
    200,
    "failed",
    "throttled",
    {
      host: wns,
      headers: { "x-wns-status": "dropped", "x-wns-notificationstatus": "channelthrottled" }
    }
  ],
  [410, "gone", "gone", { host: wns, headers: { "x-wns-status": "dropped" } }],
  [400, "dead", "refused", { host: wns, headers: { "x-wns-status": "dropped" } }],
  // Words that say nothing about what became of the push.
  [201, "delivered", "accepted", { host: wns, headers: { "x-wns-status": "queued" } }],
  [
    201,
    "delivered",
    "accepted",
    { host: wns, headers: { "x-wns-deviceconnectionstatus": "disconnected" } }
  ],
  [201, "delivered", "accepted", { host: fcm, headers: { ttl: "0", location: "/m/1" } }],

  ...[408, 425, 500, 502, 503, 504, 506, 507, 511, 520, 521, 522, 523, 524, 525, 526, 527, 599].map(
    (status): Row => [status, "failed", "server-error"]
  ),

  ...[300, 301, 302, 303, 304, 307, 308].map((status): Row => [status, "dead", "redirect"]),
  [302, "dead", "redirect", { host: wns, headers: { "x-wns-status": "appthrottled" } }],
  ...[402, 409, 418, 421, 451].map((status): Row => [status, "dead", "unexpected"])
]

const failures: ReadonlyArray<
  readonly [code: string, expected: ResponseResult["kind"], reason: ResponseResult["reason"]]
> = [
  ["ENOTFOUND", "failed", "unknown-host"],
  ["EAI_AGAIN", "failed", "dns"],
  ["ECONNREFUSED", "failed", "connection-refused"],
  ["ECONNRESET", "failed", "reset"],
  ["EPIPE", "failed", "reset"],
  ["UND_ERR_SOCKET", "failed", "reset"],
  ["UND_ERR_INFO", "failed", "reset"],
  ["BELLCAST_EXCESSIVE", "failed", "excessive"],
  ["BELLCAST_PROXY", "failed", "proxy"],
  ["EHOSTUNREACH", "failed", "unreachable"],
  ["ENETUNREACH", "failed", "unreachable"],
  ["ETIMEDOUT", "failed", "timeout"],
  ["UND_ERR_CONNECT_TIMEOUT", "failed", "timeout"],
  ["UND_ERR_HEADERS_TIMEOUT", "failed", "timeout"],
  ["UND_ERR_BODY_TIMEOUT", "failed", "timeout"],
  ["UND_ERR_ABORTED", "failed", "timeout"],
  ["CERT_HAS_EXPIRED", "failed", "tls"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "failed", "tls"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "failed", "tls"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "failed", "tls"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "failed", "tls"],
  ["ERR_SSL_WRONG_VERSION_NUMBER", "failed", "tls"],
  ["ERR_HTTP2_GOAWAY_SESSION", "failed", "reset"],
  ["ERR_HTTP2_STREAM_ERROR", "failed", "reset"],
  ["UNKNOWN", "failed", "network"],
  ["ADDRESS_NOT_ALLOWED", "failed", "address-not-allowed"]
]

describe("an answer of a push service", () => {
  it.for(rows)("%i means %s (%s) given %j", ([status, expected, reason, given]) => {
    assert.deepEqual<unknown>(judge(status, given), { kind: expected, reason })
  })

  it.for(failures)("that never came because of %s means %s (%s)", ([code, expected, reason]) => {
    assert.deepEqual<unknown>(classify({ error: code }, fcm, now), { kind: expected, reason })
  })

  it("has one class for any body, removes on 404 and 410 only, and is accepted on 2xx only", () => {
    const words = fc.constantFrom(...rows.map(([, , , given]) => given?.body ?? ""))
    const headers = fc.dictionary(
      fc.constantFrom(
        "retry-after",
        "x-wns-status",
        "x-wns-notificationstatus",
        "x-wns-error-description"
      ),
      fc.oneof(fc.string(), fc.constantFrom("appthrottled", "dropped", "received", "Ttl", "5"))
    )
    const text = fc.oneof(words, fc.string({ unit: "binary" }))
    fc.assert(
      fc.property(
        fc.integer({ min: 100, max: 599 }),
        text,
        headers,
        fc.constantFrom(fcm, wns),
        (status, body, headers, host) => {
          const judged = classify({ status, headers, body }, host, now)
          assert.include(["delivered", "gone", "failed", "dead"], judged.kind)
          assert.match(judged.reason, /^[a-z-]+$/)
          if (judged.kind === "gone") assert.include([404, 410], status)
          if (judged.kind === "delivered") assert.isTrue(status >= 200 && status < 300)
          if (judged.kind === "failed" && judged.retryAfterMillis !== undefined)
            assert.isAtLeast(judged.retryAfterMillis, 0)
        }
      ),
      { numRuns: 2_000 }
    )
  })

  it("that never came leads to another attempt", () => {
    fc.assert(
      fc.property(fc.string(), (error) => {
        const answer: PushResponse = { error }
        assert.strictEqual(classify(answer, fcm, now).kind, "failed")
      })
    )
  })
})
