// URLs in responses.
import { Option } from "effect"
import { assert, describe, it } from "vitest"
import { consoleOriginOf } from "#gateway/console.ts"
import type { ApiRequest } from "#gateway/http/request.ts"
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

describe("the console", () => {
  const desk = { consoleOrigin: Option.some("https://desk.example.org") }
  const own = { consoleOrigin: Option.some("http://localhost:9999") }
  const unset = { consoleOrigin: Option.none() }
  const named = { ...https, httpHost: Option.some("desk.example.org") }

  it.for([
    ["https://desk.example.org", desk, none, "desk.example.org", false],
    ["https://desk.example.org", desk, none, "DESK.example.org:443", true],
    [undefined, desk, none, "desk.example.org:8443", false],
    [undefined, desk, none, "desk.example.org.", false],
    [undefined, desk, none, "www.desk.example.org", true],
    // The service calls itself the same for requests of every host.
    [undefined, desk, named, "www.example.org", false],
    [undefined, desk, none, undefined, false],
    ["http://localhost:9999", own, none, "localhost:9999", false],
    [undefined, own, none, "127.0.0.1:9999", true],
    [undefined, unset, none, "desk.example.org", false],
    ["http://desk.example.org", unset, none, "desk.example.org", true]
  ] as const)("is %s (row %#)", ([origin, settings, common, host, isDevelopment]) => {
    const headers = { host }
    const request = { ...arrived, headers, received: headers } as unknown as ApiRequest
    assert.strictEqual(consoleOriginOf(settings, common, request, isDevelopment), origin)
  })
})
