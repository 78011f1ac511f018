// When the heartbeat says that nothing is planned or delivered.
import { assert, describe, it } from "vitest"
import { idleMillisMax, troubleOf } from "#monitoring/at-work.ts"

const fine = { consumer: "planner", trouble: undefined, pending: 0, idleMillis: 0 } as const

describe("a consumer", () => {
  it.for([
    fine,
    { ...fine, idleMillis: 10 * idleMillisMax },
    { ...fine, pending: 5, idleMillis: idleMillisMax - 1 },
    { ...fine, trouble: "changed" as const }
  ])("is at work: %o", (state) => {
    assert.isUndefined(troubleOf(state))
  })

  it("is not while it is missing or paused, also while nothing waits", () => {
    assert.equal(troubleOf({ ...fine, trouble: "missing" }), "planner is missing")
    assert.equal(troubleOf({ ...fine, trouble: "paused" }), "planner is paused")
  })

  it("is not when messages wait and nobody takes one, and names the role that is missing", () => {
    const idle = { pending: 5, idleMillis: idleMillisMax }
    assert.equal(
      troubleOf({ ...fine, ...idle }),
      "planner has 5 waiting and nobody took one for 300 s: does a process run the role fanout?"
    )
    for (const consumer of ["deliver", "limited", "retry"])
      assert.match(troubleOf({ ...fine, ...idle, consumer })!, /role delivery\?$/)
  })
})
