// Retry-After of a push service: seconds or a date, and what counts as absent.
import { assert, describe, it } from "@effect/vitest"
import { classify } from "#delivery/push/post.ts"

const now = Date.UTC(2026, 10, 20, 12, 0, 0)

const judge = (
  status: number,
  headers: Readonly<Record<string, string>> = {},
  host = "a.example"
) => classify({ status, headers, body: "" }, host, now)

const inMillis = (retryAfter: string | undefined, status = 503) => {
  const judged = judge(status, retryAfter === undefined ? {} : { "retry-after": retryAfter })
  return "retryAfterMillis" in judged ? judged.retryAfterMillis : undefined
}

describe("Retry-After", () => {
  it("is read as seconds, on every answer that is tried again", () => {
    for (const status of [408, 425, 429, 500, 503, 507])
      assert.strictEqual(inMillis("120", status), 120_000, String(status))
    assert.deepInclude(judge(406, { "retry-after": " 7 " }, "db5p.notify.windows.com"), {
      retryAfterMillis: 7_000
    })
    assert.strictEqual(inMillis("0"), 0)
  })

  it("is a date by the clock of the push service, whatever ours says", () => {
    const headers = {
      date: "Fri, 20 Nov 2026 15:00:00 GMT",
      "retry-after": "Fri, 20 Nov 2026 15:01:30 GMT"
    }
    assert.deepInclude(judge(429, headers), { retryAfterMillis: 90_000 })
    const past = { ...headers, "retry-after": "Fri, 20 Nov 2026 14:00:00 GMT" }
    assert.notProperty(judge(429, past), "retryAfterMillis")
  })

  it("is read as a date in all three forms of RFC 9110, in any time zone", () => {
    const zone = process.env["TZ"]
    try {
      for (const each of ["UTC", "America/New_York", "Asia/Kolkata"]) {
        process.env["TZ"] = each
        assert.strictEqual(inMillis("Fri, 20 Nov 2026 12:01:30 GMT"), 90_000, each)
        assert.strictEqual(inMillis("Friday, 20-Nov-26 12:01:30 GMT"), 90_000, each)
        assert.strictEqual(inMillis("Fri Nov 20 12:01:30 2026"), 90_000, each)
      }
    } finally {
      if (zone === undefined) delete process.env["TZ"]
      else process.env["TZ"] = zone
    }
  })

  it("counts as absent when it is missing, past, negative or garbage", () => {
    const absent = [
      undefined,
      "",
      "Fri, 20 Nov 2026 11:59:59 GMT",
      "Fri, 20 Nov 2026 12:00:00 GMT",
      "-5",
      "1.5",
      "1e3",
      "0x10",
      "soon"
    ]
    for (const value of [
      ...absent,
      "Foo 2099",
      "2099-01-01T00:00:00Z",
      "Fri, 99 Nov 2099 12:00:00 GMT"
    ]) {
      assert.isUndefined(inMillis(value), value)
    }
  })

  it("stays a number however many digits it has", () => {
    assert.isTrue(Number.isSafeInteger(inMillis("9".repeat(400))))
    assert.isAbove(inMillis("99999999999") ?? 0, 24 * 3600 * 1000)
  })

  it("is not looked at on an answer that is not tried again", () => {
    for (const status of [201, 301, 400, 403, 404, 410, 413])
      assert.isUndefined(inMillis("5", status), String(status))
  })
})
