// Patterns of allowed origins, matched against any text that a client may send.
import { assert, it } from "vitest"
import { allowedOrigin } from "#gateway/http/response-headers.ts"

const patterns = ["https://*.*.*.*.ok.example"]

it("matches no origin that is longer than an origin can be, in no time", () => {
  assert.equal(allowedOrigin("https://a.b.c.d.ok.example", patterns), "https://a.b.c.d.ok.example")
  const long = `https://${"a.".repeat(8_000)}`
  const began = performance.now()
  assert.isUndefined(allowedOrigin(`${long}ok.example`, patterns))
  assert.isUndefined(allowedOrigin(long, patterns))
  // Without a limit, four stars over 16,000 characters take minutes.
  assert.isBelow(performance.now() - began, 1_000)
})
