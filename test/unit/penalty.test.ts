// When a push service that sends too much is left alone, and for how long.
import { assert, describe, it } from "vitest"
import { Penalty } from "#delivery/push/transport/peer.ts"

const now = 1_000_000
const second = 1_000
const minute = 60 * second
const hour = 60 * minute

const afterFive = () => {
  const penalty = new Penalty()
  for (let i = 0; i < 5; i++) penalty.note(now)
  return penalty
}

describe("a push service that sends too much", () => {
  it("is left alone for 10 s after five connections within a minute", () => {
    const penalty = new Penalty()
    for (let i = 0; i < 4; i++) assert.isFalse(penalty.note(now + i * second))
    assert.isFalse(penalty.isBlocked(now + 4 * second))
    assert.isTrue(penalty.note(now + 5 * second))
    assert.isTrue(penalty.isBlocked(now + 15 * second - 1))
    assert.isFalse(penalty.isBlocked(now + 15 * second))
  })

  it("is not for five within a longer time", () => {
    const penalty = new Penalty()
    for (let i = 0; i < 20; i++) assert.isFalse(penalty.note(now + i * 15.1 * second))
  })

  it("is left alone twice as long after each further connection, up to ten minutes", () => {
    const penalty = afterFive()
    let at = now + 10 * second
    for (const millis of [20, 40, 80, 160, 320, 600, 600].map((each) => each * second)) {
      assert.isTrue(penalty.note(at))
      assert.isTrue(penalty.isBlocked(at + millis - 1))
      at += millis
      assert.isFalse(penalty.isBlocked(at))
    }
  })

  it("gets no longer block for connections that were open when it began", () => {
    const penalty = afterFive()
    for (let i = 0; i < 100; i++) assert.isFalse(penalty.note(now + 1))
    assert.isFalse(penalty.isBlocked(now + 10 * second))
  })

  it("has five again after an hour without one", () => {
    const penalty = afterFive()
    assert.isFalse(penalty.note(now + hour + 1))
    assert.isFalse(penalty.isBlocked(now + hour + 1))
  })
})
