// The credentials breaker: when it opens, whom it lets through, what closes it.
import { assert, describe, it } from "@effect/vitest"
import { makeBreaker } from "#delivery/lanes/breaker.ts"

const openMillis = 60_000
const now = 1_800_000_000_000

const opened = () => {
  const breaker = makeBreaker(openMillis)
  assert.deepEqual(breaker.refused("a", now), { until: now + openMillis, opens: true })
  return breaker
}

describe("the credentials breaker", () => {
  it("lets everything through until our credentials are refused", () => {
    const breaker = makeBreaker(openMillis)
    assert.isUndefined(breaker.admit(now))
    assert.isFalse(breaker.accepted(now))
    assert.isUndefined(breaker.admit(now))
  })

  it("opens at the first refusal, once, and says when to come back", () => {
    const breaker = opened()
    assert.strictEqual(breaker.admit(now + 1), now + openMillis)
    assert.isFalse(breaker.passes(now + 1))
    assert.deepEqual(breaker.refused("b", now + 5), { until: now + openMillis, opens: false })
  })

  it("lets one probe through when half-open; the others wait for its answer", () => {
    const breaker = opened()
    const halfOpen = now + openMillis
    assert.isTrue(breaker.passes(halfOpen))
    assert.isUndefined(breaker.admit(halfOpen))
    assert.strictEqual(breaker.admit(halfOpen), halfOpen + openMillis / 10)
    assert.isUndefined(breaker.admit(halfOpen + openMillis / 10), "a probe that told nothing is followed by another")
  })

  it("closes with a 2xx", () => {
    const breaker = opened()
    breaker.admit(now + openMillis)
    assert.isTrue(breaker.accepted(now + openMillis + 50))
    assert.isUndefined(breaker.admit(now + openMillis + 51))
    assert.isUndefined(breaker.admit(now + openMillis + 51))
  })

  it("opens again when the probe is refused, whatever was accepted before", () => {
    const breaker = makeBreaker(openMillis)
    breaker.accepted(now)
    for (const each of ["a", "b", "c", "d", "e"]) breaker.refused(each, now)
    breaker.admit(now + openMillis)
    assert.deepEqual(breaker.refused("a", now + openMillis), { until: now + 2 * openMillis, opens: true })
  })

  it("takes a refusal right after a 2xx for one subscription's trouble, and five different ones in a row for ours", () => {
    const breaker = makeBreaker(openMillis)
    breaker.accepted(now)
    for (let i = 0; i < 20; i++) assert.strictEqual(breaker.refused("a", now), "lone")
    for (const each of ["b", "c", "d"]) assert.strictEqual(breaker.refused(each, now), "lone")
    assert.deepInclude(breaker.refused("e", now) as object, { opens: true })
  })

  it("starts its row anew with every 2xx, and holds a proof for ten minutes", () => {
    const breaker = makeBreaker(openMillis)
    for (const each of ["a", "b", "c", "d", "e", "f"]) {
      breaker.accepted(now)
      assert.strictEqual(breaker.refused(each, now), "lone")
    }
    assert.isTrue(breaker.proven(now + 599_999))
    assert.isFalse(breaker.proven(now + 600_000))
    assert.deepInclude(breaker.refused("a", now + 600_000) as object, { opens: true })
  })
})
