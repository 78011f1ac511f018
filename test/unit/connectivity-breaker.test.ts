// When a push service counts as out of reach, and how it is tried again.
import { assert, describe, it } from "@effect/vitest"
import { ConnectivityBreaker } from "#delivery/push-service/breakers.ts"

const now = 1_800_000_000_000
const second = 1_000

/** Undefined: a push is sent. Else the time to come back. */
const admit = (reach: ConnectivityBreaker, at: number): number | undefined => {
  const until = reach.deferral(at)
  if (until === undefined) reach.probes(at)
  return until
}

const lost = () => {
  const reach = new ConnectivityBreaker(10 * second, 60 * second)
  for (const each of ["a", "b", "c", "d"]) assert.isUndefined(reach.failed(each, now, now))
  assert.isUndefined(admit(reach, now))
  assert.strictEqual(reach.failed("e", now, now), "opens")
  return reach
}

describe("a push service that does not answer", () => {
  it("is left alone after five subscriptions in a row", () => {
    const reach = lost()
    assert.strictEqual(reach.stateAt(now), "open")
    assert.strictEqual(admit(reach, now + 1), now + 10 * second)
    assert.isUndefined(reach.failed("f", now + 1, now + 1), "it was sent before")
    assert.strictEqual(admit(reach, now + 1), now + 10 * second)
  })

  it("is not for one subscription, however often, nor for five with an answer between them", () => {
    const reach = new ConnectivityBreaker(10 * second, 60 * second)
    for (let i = 0; i < 20; i++) assert.notStrictEqual(reach.failed("a", now, now), "opens")
    assert.isTrue(reach.responded(now))
    for (let i = 0; i < 20; i++) {
      for (const each of ["a", "b", "c", "d"]) assert.isUndefined(reach.failed(each, now, now))
      assert.isFalse(reach.responded(now))
    }
    assert.isUndefined(admit(reach, now))
  })

  it("is logged once when few subscriptions get no response, and once at the end", () => {
    const reach = new ConnectivityBreaker(10 * second, 60 * second)
    for (let round = 0; round < 2; round++) {
      for (const each of ["a", "b", "a", "b"]) assert.isUndefined(reach.failed(each, now, now))
      assert.strictEqual(reach.failed("a", now, now), "silent")
      for (let i = 0; i < 20; i++) assert.isUndefined(reach.failed("b", now, now))
      assert.isTrue(reach.responded(now))
      assert.isFalse(reach.responded(now))
    }
    for (let i = 0; i < 5; i++) reach.failed("a", now, now)
    for (const each of ["b", "c", "d"]) assert.isUndefined(reach.failed(each, now, now))
    assert.strictEqual(reach.failed("e", now, now), "opens")
  })

  it("is not one of which a connection broke, with many pushes, while others were answered", () => {
    const reach = new ConnectivityBreaker(10 * second, 60 * second)
    reach.responded(now + 1)
    for (let i = 0; i < 20; i++) assert.isUndefined(reach.failed(`early ${i}`, now, now + 2))
    assert.isUndefined(admit(reach, now + 2))
    for (let i = 0; i < 4; i++) reach.failed(`late ${i}`, now + 1, now + 3)
    assert.strictEqual(reach.failed("late 4", now + 1, now + 3), "opens")
  })

  it("is tried with one push at a time, after ever longer waits of at most the longest", () => {
    const reach = lost()
    let at = now + 10 * second
    for (const wait of [20, 40, 60, 60]) {
      assert.strictEqual(reach.stateAt(at), "half-open")
      assert.isUndefined(admit(reach, at))
      assert.isAbove(admit(reach, at) ?? 0, at, "one probe at a time")
      assert.isUndefined(reach.failed("a", at + 5, at + 5), "that is no news")
      assert.strictEqual(admit(reach, at + 5), at + 5 + wait * second)
      at += 5 + wait * second
    }
  })

  it("is sent to again with the first answer, and the next wait is a short one", () => {
    const reach = lost()
    admit(reach, now + 10 * second)
    reach.failed("a", now + 10 * second, now + 10 * second)
    assert.isTrue(reach.responded(now))
    assert.isFalse(reach.responded(now))
    assert.isUndefined(admit(reach, now + 11 * second))
    for (const each of ["a", "b", "c", "d", "e"])
      reach.failed(each, now + 20 * second, now + 20 * second)
    assert.strictEqual(admit(reach, now + 20 * second), now + 30 * second)
  })
})
