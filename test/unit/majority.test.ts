// The mass-gone guard: when it stops believing "gone", and when it believes again.
import { assert, describe, it } from "@effect/vitest"
import { Guard } from "#delivery/push-service/guard.ts"

const minute = 60_000
const start = 1_800_000_000_000

const noted = (guard: Guard, times: number, gone: boolean, now: number) =>
  Array.from({ length: times }, () => guard.note(gone, now)).filter((each) => each !== undefined)

describe("the mass-gone guard", () => {
  it("believes 49 gone answers and holds from the 50th, saying so once", () => {
    const guard = new Guard()
    assert.deepEqual(noted(guard, 49, true, start), [])
    assert.isFalse(guard.holding)
    assert.strictEqual(guard.note(true, start), "holds")
    assert.isTrue(guard.holding)
    assert.deepEqual(noted(guard, 500, true, start + minute), [])
  })

  it("believes a share of exactly a half and no more", () => {
    const guard = new Guard()
    noted(guard, 100, false, start)
    assert.deepEqual(noted(guard, 100, true, start), [])
    assert.strictEqual(guard.note(true, start), "holds")
  })

  it("believes again when the share falls, saying so once", () => {
    const guard = new Guard()
    noted(guard, 60, true, start)
    assert.deepEqual(noted(guard, 59, false, start + minute), [])
    assert.strictEqual(guard.note(false, start + minute), "trusts")
    assert.isFalse(guard.holding)
  })

  it("forgets answers after five minutes", () => {
    const guard = new Guard()
    noted(guard, 49, true, start)
    assert.deepEqual(noted(guard, 49, true, start + 5 * minute), [])
    assert.isFalse(guard.holding)
    assert.strictEqual(guard.note(true, start + 7 * minute), "holds")
  })

  it("does not forget its suspicion in a quiet hour, but gives it up for ten answers", () => {
    const guard = new Guard()
    noted(guard, 60, true, start)
    noted(guard, 1, true, start + 60 * minute)
    assert.isTrue(guard.holding)
    assert.deepEqual(noted(guard, 9, false, start + 60 * minute), ["trusts"])
  })

  it("adds the counts of other workers, and defers or trusts by the sum", () => {
    const guard = new Guard()
    noted(guard, 25, true, start)
    assert.strictEqual(guard.merge({ answers: 25, gone: 25 }, false, start), "holds")
    assert.strictEqual(guard.merge({ answers: 60, gone: 0 }, false, start), "trusts")
    const other = new Guard()
    other.merge({ answers: 500, gone: 0 }, false, start)
    assert.deepEqual(noted(other, 100, true, start), [])
  })

  it("believes another worker that holds as long as it knows nothing itself", () => {
    const guard = new Guard()
    assert.strictEqual(guard.merge({ answers: 0, gone: 0 }, true, start), "holds")
    assert.isTrue(guard.holding)
    assert.deepEqual(noted(guard, 10, false, start), ["trusts"])
    assert.isUndefined(guard.merge({ answers: 0, gone: 0 }, true, start))
    assert.isFalse(guard.holding)
  })

  it("tells each answer of its own once, and none that it was told; ten gone ones at once", () => {
    const guard = new Guard()
    guard.merge({ answers: 7, gone: 7 }, false, start)
    noted(guard, 9, true, start)
    noted(guard, 3, false, start)
    assert.isFalse(guard.isUrgent)
    guard.note(true, start)
    assert.isTrue(guard.isUrgent)
    assert.deepEqual(guard.takeCounts(), { answers: 13, gone: 10 })
    assert.deepEqual(guard.takeCounts(), { answers: 0, gone: 0 })
    assert.isFalse(guard.isUrgent)
  })
})
