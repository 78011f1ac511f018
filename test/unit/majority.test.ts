// The majority that the mass-gone guard and strikes look at: when it begins, and when it ends.
import { assert, describe, it } from "@effect/vitest"
import { Majority } from "#delivery/push-service/mass-gone.ts"

const minute = 60_000
const start = 1_800_000_000_000

/** Adds events one by one. Returns what the majority changes to. */
const noted = (majority: Majority, times: number, ofKind: boolean, now: number) =>
  Array.from({ length: times }, () => {
    const before = majority.holds
    majority.add(1, ofKind ? 1 : 0, now)
    return majority.holds === before ? undefined : majority.holds
  }).filter((each) => each !== undefined)

describe("the majority", () => {
  it("begins with the 50th event of its kind, not before", () => {
    const majority = new Majority()
    assert.deepEqual(noted(majority, 49, true, start), [])
    assert.isFalse(majority.holds)
    assert.deepEqual(noted(majority, 1, true, start), [true])
    assert.deepEqual(noted(majority, 500, true, start + minute), [])
  })

  it("is more than exactly a half", () => {
    const majority = new Majority()
    noted(majority, 100, false, start)
    assert.deepEqual(noted(majority, 100, true, start), [])
    assert.deepEqual(noted(majority, 1, true, start), [true])
  })

  it("ends when the share falls to a half", () => {
    const majority = new Majority()
    noted(majority, 60, true, start)
    assert.deepEqual(noted(majority, 59, false, start + minute), [])
    assert.deepEqual(noted(majority, 1, false, start + minute), [false])
  })

  it("forgets events after five minutes", () => {
    const majority = new Majority()
    noted(majority, 49, true, start)
    assert.deepEqual(noted(majority, 49, true, start + 5 * minute), [])
    assert.isFalse(majority.holds)
    assert.deepEqual(noted(majority, 1, true, start + 7 * minute), [true])
  })

  it("does not end in a quiet hour, but with ten events", () => {
    const majority = new Majority()
    noted(majority, 60, true, start)
    noted(majority, 1, true, start + 60 * minute)
    assert.isTrue(majority.holds)
    assert.deepEqual(noted(majority, 9, false, start + 60 * minute), [false])
  })

  it("begins and ends by the sum with events that others counted", () => {
    const majority = new Majority()
    noted(majority, 25, true, start)
    majority.add(25, 25, start)
    assert.isTrue(majority.holds)
    majority.add(60, 0, start)
    assert.isFalse(majority.holds)
    const other = new Majority()
    other.add(500, 0, start)
    assert.deepEqual(noted(other, 100, true, start), [])
  })

  it("is taken over from elsewhere as long as nothing is known here", () => {
    const majority = new Majority()
    majority.believe()
    assert.isTrue(majority.holds)
    assert.deepEqual(noted(majority, 10, false, start), [false])
    majority.believe()
    assert.isFalse(majority.holds)
  })
})
