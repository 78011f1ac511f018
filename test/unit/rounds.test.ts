// A client with many requests delays neither other clients nor the event loop.
import { assert, it } from "vitest"
import { makeRounds } from "#gateway/server/handler.ts"

const rounds = (count: number) =>
  Array.from({ length: count }).reduce<Promise<void>>(
    (before) => before.then(() => new Promise((resolve) => setImmediate(resolve))),
    Promise.resolve()
  )

it("lets accounts take turns, each in its own order", async () => {
  const begin = makeRounds()
  const order: Array<string> = []
  for (let i = 0; i < 4; i += 1) begin("many", () => order.push(`many ${i}`))
  begin("one", () => order.push("one"))
  begin("two", () => order.push("two"))
  await rounds(2)
  assert.deepEqual(order, ["many 0", "one", "two", "many 1", "many 2", "many 3"])
})

it("gives the event loop a turn in between, and begins everything in the end", async () => {
  const begin = makeRounds()
  let done = 0
  const busy = () => {
    const ends = performance.now() + 8
    while (performance.now() < ends);
    done += 1
  }
  for (let i = 0; i < 12; i += 1) begin("many", busy)
  await rounds(1)
  assert.isBelow(done, 12)
  await rounds(12)
  assert.equal(done, 12)
})
