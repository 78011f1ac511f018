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
    assert.isFalse(breaker.accepted("z", now))
    assert.isUndefined(breaker.admit(now))
  })

  it("opens at the first refusal, once, and says when to come back", () => {
    const breaker = opened()
    assert.strictEqual(breaker.admit(now + 1), now + openMillis)
    assert.isFalse(breaker.passes(now + 1))
    assert.deepEqual(breaker.refused("b", now + 5), { until: now + openMillis, opens: false })
  })

  it("stays open no longer, and holds a proof no longer, when the clock is set back", () => {
    const hour = 60 * 60_000
    const breaker = opened()
    assert.strictEqual(breaker.admit(now - hour), now - hour + openMillis)
    assert.isUndefined(breaker.admit(now - hour + openMillis), "the probe")
    assert.strictEqual(breaker.admit(now - 2 * hour), now - 2 * hour + openMillis)
    breaker.accepted("z", now)
    assert.isTrue(breaker.proven(now - hour))
    assert.isFalse(breaker.proven(now - hour + 10 * 60_000))
  })

  it("lets one probe through when half-open; the others wait for its answer", () => {
    const breaker = opened()
    const halfOpen = now + openMillis
    assert.isTrue(breaker.passes(halfOpen))
    assert.isUndefined(breaker.admit(halfOpen))
    assert.strictEqual(breaker.admit(halfOpen), halfOpen + openMillis / 10)
    assert.isUndefined(
      breaker.admit(halfOpen + openMillis / 10),
      "a probe that told nothing is followed by another"
    )
  })

  it("closes with a 2xx", () => {
    const breaker = opened()
    breaker.admit(now + openMillis)
    assert.isTrue(breaker.accepted("z", now + openMillis + 50))
    assert.isUndefined(breaker.admit(now + openMillis + 51))
    assert.isUndefined(breaker.admit(now + openMillis + 51))
  })

  it("opens again when the probe is refused, whatever was accepted before", () => {
    const breaker = makeBreaker(openMillis)
    breaker.accepted("z", now)
    for (const each of ["a", "b", "c", "d", "e"]) breaker.refused(each, now)
    breaker.admit(now + openMillis)
    assert.deepEqual(breaker.refused("a", now + openMillis), {
      until: now + 2 * openMillis,
      opens: true
    })
  })

  it("takes a refusal right after a 2xx for one subscription's trouble, and five different ones in a row for ours", () => {
    const breaker = makeBreaker(openMillis)
    breaker.accepted("z", now)
    for (let i = 0; i < 20; i++) assert.strictEqual(breaker.refused("a", now), "lone")
    for (const each of ["b", "c", "d"]) assert.strictEqual(breaker.refused(each, now), "lone")
    assert.deepInclude(breaker.refused("e", now) as object, { opens: true })
  })

  it("starts its row anew with every 2xx, and holds a proof for ten minutes", () => {
    const breaker = makeBreaker(openMillis)
    for (const each of ["a", "b", "c", "d", "e", "f"]) {
      breaker.accepted("z", now)
      assert.strictEqual(breaker.refused(each, now), "lone")
    }
    assert.isTrue(breaker.proven(now + 599_999))
    assert.isFalse(breaker.proven(now + 600_000))
    assert.deepInclude(breaker.refused("g", now + 600_000) as object, { opens: true })
  })

  it("knows one that was refused alone again, in a quiet hour and as a probe, until it is accepted", () => {
    const breaker = makeBreaker(openMillis)
    breaker.accepted("z", now)
    assert.strictEqual(breaker.refused("a", now), "lone")
    assert.strictEqual(breaker.refused("a", now + 3_600_000), "lone")
    assert.deepInclude(breaker.refused("b", now + 3_600_000) as object, { opens: true })
    assert.strictEqual(breaker.refused("a", now + 3_600_000 + openMillis), "lone")
    assert.strictEqual(breaker.stateAt(now + 3_600_000 + openMillis), "half-open")
    breaker.accepted("a", now + 7_200_000)
    assert.deepInclude(breaker.refused("a", now + 9_000_000) as object, { opens: true })
  })

  it("opens for as long as another worker's is open, at most as long as its own, and closes with it", () => {
    const breaker = makeBreaker(openMillis)
    assert.isTrue(breaker.told(20_000, now))
    assert.strictEqual(breaker.admit(now), now + 20_000)
    assert.strictEqual(breaker.openMillis(now + 5_000), 15_000)
    assert.isFalse(breaker.told(20_000, now + 1), "it is open already")
    assert.isTrue(breaker.told(0, now + 2))
    assert.isUndefined(breaker.admit(now + 2))
    assert.isTrue(breaker.proven(now + 2))
    breaker.told(10 * openMillis, now + 3)
    assert.strictEqual(breaker.admit(now + 3), now + 3 + openMillis)
  })
})
