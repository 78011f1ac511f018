// When a stream is full, and when the log says so.
import { assert, describe, it } from "vitest"
import { isFull, lastShare, levelOf } from "#nats/watch/space.ts"

const room = (bytes: number) => ({ bytes, bytesMax: 1_000 })

describe("a stream", () => {
  it("is full from 95 % of its bytes on, and never without a limit", () => {
    assert.deepEqual(
      [949, 950, 1_000, 2_000].map((bytes) => isFull(room(bytes))),
      [false, true, true, true]
    )
    assert.isFalse(isFull({ bytes: 1_000_000, bytesMax: -1 }))
  })

  it("takes entries that are written again up to 99 %", () => {
    assert.deepEqual(
      [950, 989, 990].map((bytes) => isFull(room(bytes), lastShare)),
      [false, false, true]
    )
  })

  it("rises a level at 70, 90 and 95 %", () => {
    assert.deepEqual(
      [699, 700, 899, 900, 949, 950].map((bytes) => levelOf(room(bytes), 0)),
      [0, 1, 1, 2, 2, 3]
    )
  })

  it("stays on its level until it is one point below the share", () => {
    assert.deepEqual(
      [949, 940, 939, 889, 0].map((bytes) => levelOf(room(bytes), 3)),
      [3, 3, 2, 1, 0]
    )
  })
})
