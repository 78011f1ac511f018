// When an ended push is a strike against its subscription, and when strikes suspend it.
import { assert, describe, it } from "@effect/vitest"
import type { Fate } from "#domain/outcome.ts"
import type { Reason, StrikeReason } from "#domain/reason.ts"
import { strike, strikeOf } from "#domain/subscription/strike.ts"

const hour = 3_600_000
const interval = 8 * hour
const first = 1_800_000_000_000

describe("a strike", () => {
  it.for<readonly [Fate, Reason, StrikeReason | undefined]>([
    ["dead", "attempts-used-up:unknown-host", "unknown-host"],
    ["expired", "expired:unknown-host", "unknown-host"],
    ["dead", "redirect", "redirect"],
    ["dead", "unexpected", "unexpected"],
    ["dead", "address-not-allowed", "address-not-allowed"],
    ["dead", "endpoint-not-allowed", "endpoint-not-allowed"],
    ["dead", "attempts-used-up:credentials", "credentials"],
    ["dead", "attempts-used-up:key-mismatch", "key-mismatch"],
    // Held back with all others until its life was over.
    ["expired", "expired:credentials", undefined],
    ["expired", "expired:breaker-open", undefined],
    ["expired", "expired:mass-gone", undefined],
    ["expired", "expired", undefined],
    ["retrying", "unknown-host", undefined],
    ["delivered", "accepted", undefined],
    ["gone", "gone", undefined],
    ...(
      [
        "dns",
        "tls",
        "timeout",
        "reset",
        "connection-refused",
        "unreachable",
        "network",
        "server-error",
        "throttled"
      ] as const
    ).map((reason) => ["dead", `attempts-used-up:${reason}`, undefined] as const),
    // Only if others were not refused: see delivery/jobs/strikes.ts.
    ...(["refused", "bad-topic", "bad-ttl"] as const).map(
      (reason) => ["dead", reason, reason] as const
    ),
    ["dead", "attempts-used-up:dropped", "dropped"],
    ["expired", "expired:dropped", "dropped"],
    ["retrying", "dropped", undefined],
    ["dead", "too-large", undefined],
    ["dead", "suspended", undefined]
  ])("for %s (%s) is %s", ([fate, reason, expected]) =>
    assert.strictEqual(strikeOf({ fate, reason }), expected)
  )
})

describe("strikes", () => {
  const earlier = (count: number, lastHours: number) => ({
    count,
    cause: "redirect" as const,
    firstAt: first,
    lastAt: first + lastHours * hour
  })
  const next = (
    strikes: ReturnType<typeof earlier> | undefined,
    hours: number,
    cause: StrikeReason = "redirect"
  ) => strike(strikes, cause, first + hours * hour, interval)

  it("are counted once in eight hours", () => {
    assert.strictEqual(next(undefined, 0), 1)
    assert.isUndefined(next(earlier(1, 0), 7.9))
    assert.strictEqual(next(earlier(1, 0), 8), 2)
  })

  it("suspend at the third, when more than a day lies between it and the first", () => {
    assert.strictEqual(next(earlier(2, 8), 16), 3)
    assert.strictEqual(next(earlier(3, 16), 24), 4)
    assert.strictEqual(next(earlier(3, 16), 24.1), "suspend")
    assert.strictEqual(next(earlier(2, 8), 30), "suspend")
    assert.strictEqual(next(earlier(1, 0), 100), 2)
  })

  it("are not needed where nothing may be sent", () => {
    assert.strictEqual(next(undefined, 0, "endpoint-not-allowed"), "suspend")
    assert.strictEqual(next(undefined, 0, "address-not-allowed"), 1)
  })
})
