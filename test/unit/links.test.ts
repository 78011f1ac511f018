// URLs in responses.
import { Option } from "effect"
import { assert, describe, it } from "vitest"
import { originOf } from "#gateway/http/response-headers.ts"

const none = { host: "127.0.0.1", httpScheme: Option.none(), httpHost: Option.none() }
const https = { ...none, httpScheme: Option.some("https" as const) }
const arrived = { received: {}, fromTrustedProxy: false, port: 9999 }

describe("the origin in URLs", () => {
  it.for([
    ["http://x", none, "x:80"],
    ["http://x", none, "x:0080"],
    ["http://[::1]", none, "[::1]:80"],
    ["http://[::80]", none, "[::80]"],
    ["http://x:8080", none, "x:8080"],
    ["http://x:443", none, "x:443"],
    ["https://x", https, "x:443"],
    ["https://x:80", https, "x:80"],
    ["https://y", { ...https, httpHost: Option.some("y:443") }, "x:8080"],
    ["http://127.0.0.1:9999", none, undefined],
    ["http://127.0.0.1:9999", none, "x/y"]
  ] as const)("is %s (row %#)", ([origin, settings, host]) => {
    assert.strictEqual(originOf(settings, { ...arrived, headers: { host } }), origin)
  })

  it.for([
    ["https://x", none, true, "https"],
    ["https://x", none, true, "HTTPS"],
    ["http://x", none, true, "http"],
    ["http://x", none, true, undefined],
    ["http://x", none, false, "https"],
    ["http://x", none, true, "https, http"],
    ["http://x", none, true, "javascript"],
    ["http://x", none, true, "https://evil.example/"],
    ["https://x", https, true, "http"]
  ] as const)(
    "has the scheme of a trusted proxy only: %s (row %#)",
    ([origin, settings, fromTrustedProxy, scheme]) => {
      const received = { "x-forwarded-proto": scheme }
      const request = { ...arrived, headers: { host: "x" }, received, fromTrustedProxy }
      assert.strictEqual(originOf(settings, request), origin)
    }
  )
})
