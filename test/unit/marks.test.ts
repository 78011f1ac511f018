// Whether a stream is the one that a checkpoint was made from, and the one that it was.
import { assert, describe, it } from "vitest"
import { replacedFault, streamFault } from "#nats/follower/checkpoint.ts"

const stream = "BELLCAST_LOG"
const mark = { seq: 12, at: 5_000, revisions: {} }

describe("a stream of a checkpoint", () => {
  it("may be longer, or lack the marked message", () => {
    assert.isUndefined(streamFault({ stream, lastSeq: 12 }, 10, mark, 5_000))
    assert.isUndefined(streamFault({ stream, lastSeq: 40 }, 10, mark, 5_001))
    assert.isUndefined(streamFault({ stream, lastSeq: 40 }, 10, mark, undefined))
  })

  it("must not end before the checkpoint or the mark", () => {
    assert.include(streamFault({ stream, lastSeq: 9 }, 10, undefined, undefined), "up to 10")
    assert.include(streamFault({ stream, lastSeq: 11 }, 10, mark, undefined), "up to 12")
  })

  it("must have the marked message of that time", () => {
    assert.include(streamFault({ stream, lastSeq: 40 }, 10, mark, 9_000), "message 12 of")
  })

  it("is taken as it is if an earlier version made the checkpoint", () => {
    assert.isUndefined(streamFault({ stream, lastSeq: 10 }, 10, undefined, undefined))
  })
})

describe("a stream under a running process", () => {
  const before = { stream, created: "2026-11-22T10:00:00Z", lastSeq: 12 }

  it("is the same while it only grows", () => {
    assert.isUndefined(replacedFault(before, before))
    assert.isUndefined(replacedFault(before, { ...before, lastSeq: 13 }))
  })

  it("is another one when it was made again or is shorter", () => {
    assert.include(replacedFault(before, { ...before, created: "later" }), "created again")
    assert.include(replacedFault(before, { ...before, lastSeq: 11 }), "ends at 11 now")
  })
})
