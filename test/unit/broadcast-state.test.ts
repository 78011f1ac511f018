// The states of broadcasts and the orders for jobs, whatever a process has heard so far.
import { assert, describe, it } from "@effect/vitest"
import { changeTo, orderOf, type StateChange, stateAfter } from "#domain/broadcast-state.ts"

const about = { broadcast: 9, channel: "news", by: "basicauth:a", at: 5, expiresAt: 99 }

const history = (...states: ReadonlyArray<"running" | "paused" | "cancelled">) =>
  states.reduce<StateChange | undefined>((last, to) => changeTo(to, last, 4, about), undefined)!

describe("the changes of a broadcast", () => {
  it("begin another run behind each pause, also when it is cancelled", () => {
    assert.deepInclude(history("paused"), { type: "broadcast.paused/1", run: 0, expiresAt: 99 })
    const resumed = history("paused", "running")
    assert.deepInclude(resumed, { type: "broadcast.resumed/1", run: 1, pausedAt: 4 })
    assert.deepInclude(history("paused", "running", "paused", "running"), { run: 2 })
    assert.deepInclude(history("paused", "cancelled"), { run: 1, pausedAt: 4 })
    const cancelled = history("paused", "running", "cancelled")
    assert.deepInclude(cancelled, { type: "broadcast.cancelled/1", run: 2, pausedAt: 4 })
    assert.notProperty(history("cancelled"), "pausedAt")
    assert.deepEqual([undefined, resumed, cancelled].map(stateAfter), [
      "running",
      "running",
      "cancelled"
    ])
  })

  it("hold jobs of a paused run, hand on old ones, and believe those of a later run", () => {
    const orders = (change: StateChange | undefined) =>
      [undefined, 1, 2].map((run) => orderOf(change, run))
    assert.deepEqual(orders(undefined), ["send", "send", "send"])
    assert.deepEqual(orders(history("paused")), ["hold", "send", "send"])
    assert.deepEqual(orders(history("paused", "running")), ["old", "send", "send"])
    const again = history("paused", "running", "paused")
    assert.deepEqual(orders(again), ["hold", "hold", "send"])
    assert.deepEqual(orders(history("cancelled")), ["cancel", "cancel", "cancel"])
  })
})
