// The torture rig notices an entry that goes back, and nothing else.
import { assert, describe, it } from "vitest"
import { type Given, makeComparison } from "../torture/nats/steps-back.ts"

const given = (revision: number, seq: number, key = "k"): Given => ({
  bucket: "b",
  key,
  revision,
  seq
})

const foundIn = (...all: ReadonlyArray<Given>) => {
  const compare = makeComparison()
  return all.map(compare).filter((wrong) => wrong !== undefined)
}

describe("entries that go back", () => {
  it("are those whose later revision has an earlier message", () => {
    assert.deepEqual(foundIn(given(1, 10), given(2, 12), given(3, 11)), [
      "b k: had message 12 of LOG, then 11"
    ])
  })

  it("are not the empty list of an erased user, after which an earlier value is one", () => {
    const list = (revision: number, seq: number) => ({
      ...given(revision, seq),
      bucket: "bellcast_subscriptions"
    })
    assert.deepEqual(foundIn(list(1, 10), list(2, 0), list(3, 12)), [])
    assert.deepEqual(foundIn(list(1, 10), list(2, 0), list(3, 9)), [
      "bellcast_subscriptions k: had message 10 of LOG, then 9"
    ])
  })

  it("are not those of another key, written again, or read again", () => {
    assert.deepEqual(foundIn(given(1, 10), given(2, 9, "other"), given(3, 10), given(4, 11)), [])
    assert.deepEqual(foundIn(given(1, 10), given(2, 12), given(1, 10), given(3, 13)), [])
  })
})
