// Pushes of a broadcast with a rate that wait for their turns in one process.
import { assert, describe, it } from "vitest"
import { shardBehind, shardsAtOnce } from "#domain/job.ts"
import { shardsAt } from "#streams/tokens.ts"
import { Limit } from "../../src/delivery/rate/limit.ts"

const job = {
  broadcast: 1,
  channel: "news",
  acceptedAt: 0,
  expiresAt: 1e9,
  urgency: "normal",
  rate: 100
} as const

/** A limit, and the numbers of the pushes that went on, in order. */
const made = (pushes: number) => {
  const limit = new Limit(job)
  const gone: Array<number> = []
  for (let i = 0; i < pushes; i++) limit.wait(() => gone.push(i), false)
  return { limit, gone }
}

describe("the pushes of a broadcast with a rate", () => {
  it("go on one for each turn that has come, and ask for turns of 200 ms at once", () => {
    const { limit, gone } = made(50)
    assert.equal(limit.advance(0), 20)
    limit.add({ count: 20, first: 0 })
    assert.equal(limit.advance(95), 20)
    assert.deepEqual(gone, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    limit.advance(190)
    assert.lengthOf(gone, 20)
    limit.advance(10_000)
    assert.lengthOf(gone, 20)
  })

  it("ask for no more turns than there are pushes", () => {
    const { limit } = made(3)
    assert.equal(limit.advance(0), 3)
    limit.add({ count: 3, first: 0 })
    assert.equal(limit.advance(0), 0)
  })

  it("lose turns of 300 ms ago, and need others for them", () => {
    const { limit } = made(20)
    limit.add({ count: 20, first: 0 })
    limit.advance(190)
    assert.equal(limit.advance(400), 10)
    const taken = Array.from({ length: 20 }, () => limit.take(400))
    assert.lengthOf(
      taken.filter((turn) => turn !== undefined),
      10
    )
  })

  it("go on in front when they are early, and once more for a turn that was not used", () => {
    const { gone, limit } = made(2)
    limit.wait(() => gone.push(99), true)
    limit.add({ count: 1, first: 0 })
    limit.advance(0)
    assert.deepEqual(gone, [99])
    limit.giveBack(limit.take(0)!)
    limit.leave()
    limit.advance(0)
    assert.deepEqual(gone, [99, 0])
  })

  it("go on while others wait for the response of a push service", () => {
    const { gone, limit } = made(300)
    limit.add({ count: 300, first: 0 })
    limit.advance(200)
    for (const _ of gone) limit.take(200)
    assert.lengthOf(gone, 21)
    for (let now = 400; now < 3_000; now += 200) {
      const before = gone.length
      limit.advance(now)
      for (let i = before; i < gone.length; i++) limit.take(now)
    }
    assert.isAbove(gone.length, 2.5 * job.rate)
  })

  it("wait for the next step when their turn is lost as soon as they go on", () => {
    const { limit } = made(0)
    let tries = 0
    let now = 0
    const go = () => {
      tries += 1
      assert.isBelow(tries, 100, "one step goes on without end")
      const isUsed = limit.take(now) !== undefined
      if (isUsed) return
      limit.leave()
      limit.wait(go, true)
    }
    limit.wait(go, false)
    limit.add({ count: 1, first: 0 })
    now = 301
    assert.equal(limit.advance(300), 1)
    assert.equal(tries, 1)
    limit.add({ count: 1, first: 310 })
    now = 320
    assert.equal(limit.advance(320), 0)
    assert.equal(tries, 2)
    assert.isTrue(limit.isIdle)
  })

  it("are at most those of a second in the queues of push services", () => {
    const { gone, limit } = made(1_000)
    limit.add({ count: 500, first: 0 })
    for (let now = 0; now < 5_000; now += 20) limit.advance(now)
    assert.lengthOf(gone, job.rate)
  })

  it("come again later when they are retries without a place, at the rate", () => {
    const { limit } = made(0)
    const waits = Array.from({ length: 500 }, () => limit.postpone(0))
    assert.deepEqual([waits[0], waits[199], waits[499]], [1_000, 2_000, 5_000])
  })
})

describe("the jobs of a broadcast with a rate", () => {
  it("reach every shard once, from the first ones on", () => {
    for (const depth of [0, 1, 2]) {
      const all = shardsAt(depth)
      for (const rate of [1, 1_000, 100_000]) {
        const reached = all.slice(0, shardsAtOnce(rate, 500))
        for (const shard of reached) {
          const next = shardBehind(shard, shardsAtOnce(rate, 500))
          if (next !== undefined) reached.push(next)
        }
        assert.deepEqual(reached.toSorted(), all.toSorted())
      }
    }
  })
})
