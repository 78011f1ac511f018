// Which HTTP/2 session takes the next push, and when another one is opened.
import { assert, describe, it } from "@effect/vitest"
import { choose, roomOf, sessionsMax, streamsPerSession } from "#delivery/push/transport/choice.ts"

const load = (underWay: number, streamsMax = streamsPerSession) => ({
  underWay,
  streamsMax,
  isOpen: true
})
/** The peer has not told its limit yet. */
const unknown = (underWay: number) => ({ underWay, streamsMax: undefined, isOpen: true })
const closed = { underWay: 3, streamsMax: streamsPerSession, isOpen: false }

describe("the next push", () => {
  it("takes the least used session below its limit", () => {
    assert.strictEqual(choose([load(5), load(2), load(4)], 0, 1, sessionsMax).use, 1)
    assert.strictEqual(choose([load(5), closed, load(6)], 0, 1, sessionsMax).use, 0)
    assert.isUndefined(choose([load(2, 2), closed], 0, 1, sessionsMax).use)
  })

  it("takes a session whose limit is not known yet only as its first", () => {
    assert.strictEqual(choose([unknown(0)], 0, 1, sessionsMax).use, 0)
    assert.isUndefined(choose([unknown(1)], 0, 1, sessionsMax).use)
  })

  it("waits while the peer takes no streams, and no session is opened for it", () => {
    const none = Array.from({ length: 2 }, () => load(0, 0))
    assert.deepEqual(choose(none, 0, 1, sessionsMax), { opens: false })
  })
})

describe("another session", () => {
  it("is opened for each 32 pushes, also while others are being opened, up to the most", () => {
    assert.isFalse(choose([load(31)], 0, 1, sessionsMax).opens)
    assert.isTrue(choose([load(32)], 0, 1, sessionsMax).opens)
    assert.isFalse(choose([load(32)], 1, 1, sessionsMax).opens)
    assert.isTrue(choose([load(32)], 1, 33, sessionsMax).opens)
    assert.isFalse(choose([], sessionsMax, 10_000, sessionsMax).opens)
  })

  it("is opened for each stream where the peer takes one", () => {
    assert.isTrue(choose([load(1, 1)], 0, 3, sessionsMax).opens)
    assert.isFalse(choose([load(1, 1)], 3, 3, sessionsMax).opens)
  })

  it("replaces one that ends, but not without bound while many are ending", () => {
    assert.isTrue(choose([closed], 0, 1, sessionsMax).opens)
    const ending = Array.from({ length: 2 * sessionsMax }, () => closed)
    assert.isFalse(choose(ending, 0, 1, sessionsMax).opens)
  })
})

describe("the room of all sessions", () => {
  it("follows the lowest limit of a peer; an unknown limit changes nothing", () => {
    assert.strictEqual(roomOf([]), 512)
    assert.strictEqual(roomOf([load(3), unknown(0)]), 512)
    assert.strictEqual(roomOf([load(1, 1), unknown(0)]), 16)
    assert.strictEqual(roomOf([load(0, 0)]), 16)
  })
})
