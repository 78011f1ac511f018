// The window of a push service: what narrows it, what stops it, and how it widens again.
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { SendWindow } from "#delivery/push-service/window.ts"

const start = 1_800_000_000_000
const minute = 60_000

/** Five subscriptions throttled at a time. */
const throttle = (pacing: SendWindow, now: number, retryAfterMillis?: number) => {
  const changes = ["a", "b", "c", "d", "e"].map((each) =>
    pacing.throttled(each, now, now, retryAfterMillis)
  )
  assert.deepEqual(changes.slice(0, 4), [undefined, undefined, undefined, undefined])
  return changes[4]
}

describe("the window of a push service", () => {
  it("halves at the fifth throttled user and stops for at most 15 minutes", () => {
    const pacing = new SendWindow(64, minute)
    assert.isFalse(pacing.isSlowed)
    assert.deepEqual(throttle(pacing, start, 120_000), { window: 32, closedMillis: 120_000 })
    assert.isTrue(pacing.isSlowed)
    assert.strictEqual(pacing.closedUntil(start + 119_999), start + 120_000)
    assert.isUndefined(pacing.closedUntil(start + 120_000))
    assert.deepEqual(throttle(new SendWindow(9, minute), start, 0), {
      window: 4,
      closedMillis: 1_000
    })
    assert.deepEqual(throttle(new SendWindow(9, minute), start, 24 * 60 * minute), {
      window: 4,
      closedMillis: 15 * minute
    })
  })

  it("is the part of this process while others deliver, and whole again after that", () => {
    let processes = 1
    const pacing = new SendWindow(512, minute, (whole) => Math.floor(whole / processes))
    assert.equal(pacing.window, 64)
    const grow = () => {
      for (let n = 0; n < 1_000; n++) pacing.accepted(start, true)
    }
    grow()
    assert.equal(pacing.window, 512)
    processes = 4
    assert.equal(pacing.window, 128)
    grow()
    assert.equal(pacing.window, 128)
    assert.deepEqual(throttle(pacing, start + 1), { window: 64, closedMillis: 0 })
    processes = 1
    assert.equal(pacing.window, 64, "throttled")
    const beside = new SendWindow(512, minute, (whole) => Math.floor(whole / 4))
    assert.equal(beside.window, 16)
  })

  it("only halves without a Retry-After, and stops for a while after one push at a time", () => {
    const pacing = new SendWindow(4, minute)
    assert.deepEqual(throttle(pacing, start), { window: 2, closedMillis: 0 })
    assert.isUndefined(pacing.closedUntil(start))
    assert.deepEqual(throttle(pacing, start + 1), { window: 1, closedMillis: 0 })
    assert.deepEqual(throttle(pacing, start + 2), { window: 1, closedMillis: minute })
    assert.strictEqual(pacing.closedUntil(start + 3), start + 2 + minute)
  })

  it("stays when one user is throttled repeatedly, or five in over a minute", () => {
    const pacing = new SendWindow(64, minute)
    for (let i = 0; i < 20; i++) assert.isUndefined(pacing.throttled("a", start, start, undefined))
    for (let i = 0; i < 20; i++) {
      const now = start + minute + i * 16_000
      assert.isUndefined(pacing.throttled(`s${i}`, now, now, undefined))
    }
  })

  it("stays while nearly all other pushes are accepted, however many users are throttled", () => {
    const pacing = new SendWindow(64, minute)
    for (let i = 0; i < 2_000; i++) {
      const now = start + i * 5
      if (i % 40 > 0) pacing.accepted(now, true)
      else assert.isUndefined(pacing.throttled(`s${i}`, now, now, 60_000))
    }
    const last = start + 10_001
    const changes = [1, 2, 3, 4, 5].map((n) => pacing.throttled(`t${n}`, last, last, 60_000))
    assert.isTrue(
      changes.some((each) => each?.window === 32),
      "all are throttled now"
    )
  })

  it("is not narrowed again by what was sent before, which may only ask for a longer wait", () => {
    const pacing = new SendWindow(64, minute)
    throttle(pacing, start, 30_000)
    for (const each of ["f", "g", "h", "i", "j", "k"])
      assert.isUndefined(pacing.throttled(each, start, start + 50, 90_000))
    assert.strictEqual(pacing.window, 32)
    assert.strictEqual(pacing.closedUntil(start + 50), start + 50 + 90_000)
  })

  it("widens by one per window of accepted pushes, at most once a second", () => {
    const pacing = new SendWindow(6, minute)
    throttle(pacing, start)
    assert.strictEqual(pacing.window, 3)
    for (let i = 0; i < 100; i++) pacing.accepted(start + 999, false)
    assert.strictEqual(pacing.window, 3)
    pacing.accepted(start + 1_000, false)
    assert.strictEqual(pacing.window, 4)
    for (let i = 0; i < 3; i++) pacing.accepted(start + 60_000, false)
    assert.strictEqual(pacing.window, 4)
    pacing.accepted(start + 60_000, false)
    assert.strictEqual(pacing.window, 5)
    const whole = Array.from({ length: 10 }, () => pacing.accepted(start + 62_000, false))
    assert.deepEqual(
      whole.filter((each) => each),
      [true]
    )
    assert.isFalse(pacing.isSlowed)
  })

  it("is never above its maximum, never below one, and always recovers", () => {
    const step = fc.record({
      what: fc.constantFrom("throttled", "accepted", "told"),
      who: fc.nat(9),
      wait: fc.option(fc.nat(100_000)),
      after: fc.nat(2_000)
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.array(step, { maxLength: 200 }),
        (windowMax, steps) => {
          const pacing = new SendWindow(windowMax, minute)
          let now = start
          for (const { after, wait, what, who } of steps) {
            now += after
            if (what === "throttled")
              pacing.throttled(`s${who}`, now - after / 2, now, wait ?? undefined)
            if (what === "accepted") pacing.accepted(now, true)
            if (what === "told") pacing.merge({ window: who, closedMillis: wait ?? 0 }, now)
            assert.isTrue(pacing.window >= 1 && pacing.window <= windowMax, `${pacing.window}`)
            assert.isAtMost(pacing.closedUntil(now) ?? now, now + 15 * minute)
          }
          for (let i = 0; i < windowMax * windowMax && pacing.window < windowMax; i++) {
            now += 1_000
            pacing.accepted(now, true)
          }
          assert.strictEqual(pacing.window, windowMax)
          assert.isUndefined(pacing.closedUntil(now + 15 * minute))
        }
      )
    )
  })

  it("grows by two per accepted push while others wait, up to the size that a 429 left", () => {
    const pacing = new SendWindow(512, 60_000)
    assert.strictEqual(pacing.window, 64)
    for (let i = 0; i < 100; i++) pacing.accepted(start, false)
    assert.strictEqual(pacing.window, 64, "nobody waits")
    for (let i = 0; i < 100; i++) pacing.accepted(start, true)
    assert.strictEqual(pacing.window, 264)
    for (let i = 0; i < 1_000; i++) pacing.accepted(start, true)
    assert.strictEqual(pacing.window, 512)
    for (let i = 0; i < 5; i++) pacing.throttled(`s${i}`, start + 1, start + 2, undefined)
    assert.strictEqual(pacing.window, 256)
    for (let i = 0; i < 1_000; i++) pacing.accepted(start + 3, true)
    assert.strictEqual(pacing.window, 256, "a limit is counted by the minute")
  })

  it("comes back from 256 to 512 in half a minute, a 32nd of it each second", () => {
    const pacing = new SendWindow(512, 60_000)
    for (let i = 0; i < 500; i++) pacing.accepted(start, true)
    for (let i = 0; i < 5; i++) pacing.throttled(`s${i}`, start + 1, start + 2, undefined)
    const seconds = (n: number) => start + 2 + n * 1_000
    let whole = 0
    for (let n = 1; whole === 0; n++)
      for (let i = 0; i < 512 && whole === 0; i++) if (pacing.accepted(seconds(n), true)) whole = n
    assert.isTrue(whole >= 20 && whole <= 30, `${whole} s`)
    assert.strictEqual(pacing.window, 512)
    assert.isFalse(pacing.isSlowed)
  })
})
