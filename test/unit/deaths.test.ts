// The deaths of messages are counted to the end, also of more messages than there is room for.
import { assert, it } from "vitest"
import { Deaths } from "#nats/stream/consumer.ts"

const hourMillis = 60 * 60_000

it("counts each of many messages that die in turns to its fifth death", () => {
  const deaths = new Deaths(1_000)
  const left = new Set(Array.from({ length: 2_500 }, (_, seq) => seq))
  for (let round = 1; round <= 15; round++)
    for (const seq of left) {
      if (deaths.add(seq, round * 5_000) !== 5) continue
      deaths.end(seq)
      left.delete(seq)
    }
  assert.equal(left.size, 0)
})

it("forgets the deaths of messages that do not come back, once it lacks room", () => {
  const deaths = new Deaths(2)
  deaths.add(1, 0)
  deaths.add(2, 0)
  assert.isUndefined(deaths.add(3, hourMillis))
  // A kept message dies once an hour.
  assert.equal(deaths.add(1, hourMillis), 2)
  assert.equal(deaths.add(3, 2 * hourMillis), 1)
  assert.equal(deaths.add(1, 2 * hourMillis), 3)
  assert.isUndefined(deaths.add(2, 2 * hourMillis))
})
