// The states of broadcasts and the orders for jobs, whatever a process has heard so far.
import { assert, describe, it } from "@effect/vitest"
import {
  changeTo,
  isPlannedAt,
  orderOf,
  type Schedule,
  type StateChange,
  scheduleAfter,
  stateAfter
} from "#domain/broadcast-state.ts"

const about = { broadcast: 9, channel: "news", by: "basicauth:a", at: 5, expiresAt: 99 }

const history = (...states: ReadonlyArray<"running" | "paused" | "cancelled">) =>
  states.reduce<StateChange | undefined>((last, to) => changeTo(to, last, 4, about), undefined)!

describe("the changes of a broadcast", () => {
  it("begin another run behind each pause, also when it is cancelled", () => {
    assert.deepInclude(history("paused"), { type: "broadcast.paused", run: 0, expiresAt: 99 })
    const resumed = history("paused", "running")
    assert.deepInclude(resumed, { type: "broadcast.resumed", run: 1, pausedAt: 4 })
    assert.deepInclude(history("paused", "running", "paused", "running"), { run: 2 })
    assert.deepInclude(history("paused", "cancelled"), { run: 1, pausedAt: 4 })
    const cancelled = history("paused", "running", "cancelled")
    assert.deepInclude(cancelled, { type: "broadcast.cancelled", run: 2 })
    assert.notProperty(cancelled, "pausedAt")
    assert.deepInclude(history("cancelled"), { run: 0 })
    assert.deepEqual([undefined, resumed, cancelled].map(stateAfter), [
      "running",
      "running",
      "cancelled"
    ])
  })

  it("let jobs of a paused run wait, hand on old ones, and believe those of a later run", () => {
    const orders = (change: StateChange | undefined) =>
      [undefined, 1, 2].map((run) => orderOf(change, run))
    assert.deepEqual(orders(undefined), ["send", "send", "send"])
    assert.deepEqual(orders(history("paused")), ["wait", "send", "send"])
    assert.deepEqual(orders(history("paused", "running")), ["old", "send", "send"])
    const again = history("paused", "running", "paused")
    assert.deepEqual(orders(again), ["wait", "wait", "send"])
    assert.deepEqual(orders(history("cancelled")), ["cancel", "cancel", "cancel"])
  })

  it("repeat the schedule, with its start and the change that has the payload", () => {
    const base = { broadcast: 9, channel: "news", run: 0, by: "schedule", at: 5 }
    const at = "2026-12-24T18:00:00Z"
    const left = (change: StateChange) => scheduleAfter(change, { at: 7, seq: 30 })
    const scheduled = { type: "broadcast.scheduled", ...base, schedule: { at } } as const
    const changed = (more: object, schedule: Schedule = { at }) =>
      ({ type: "broadcast.changed", ...base, schedule, ...more }) as const
    const started = { ...scheduled, type: "broadcast.started" } as const
    assert.deepEqual([scheduled, changed({}), started].map(stateAfter), [
      "scheduled",
      "scheduled",
      "running"
    ])
    assert.deepEqual(left(scheduled), { at })
    assert.deepEqual(left(changed({})), { at })
    for (const payload of [{ data: {} }, { data_by_locale: {} }, { parts: [3] }])
      assert.deepEqual(left(changed(payload)), { at, payload: 30 })
    assert.deepEqual(left(changed({}, { at, payload: 20 })), { at, payload: 20 })
    assert.deepEqual(left(started), { at, startedAt: 7 })

    const cancel = (last: StateChange) =>
      changeTo("cancelled", last, 7, { ...about, ...kept(last) })
    const kept = (last: StateChange) => ({ schedule: left(last)! })
    for (const last of [scheduled, changed({}), started]) {
      assert.notProperty(cancel(last), "pausedAt")
      assert.equal(isPlannedAt(cancel(last)), last.type !== "broadcast.started")
      assert.equal(orderOf(last), "send")
    }
    assert.isTrue(isPlannedAt(started))
    assert.isFalse(isPlannedAt(scheduled))
    assert.isFalse(isPlannedAt(history("cancelled")))
    assert.deepEqual(left(changeTo("paused", started, 7, { ...about, ...kept(started) })), {
      at,
      startedAt: 7
    })
  })
})
