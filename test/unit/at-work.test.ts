// When the heartbeat says that a reader of a stream makes no progress, and which cause it names.
import { assert, describe, it } from "vitest"
import {
  type ReaderState,
  refusedMillisMax,
  stalledMillisMax,
  subscriptionFault,
  troubleOf
} from "#monitoring/health.ts"
import { ProcessList, WorkTally } from "#nats/connection/processes.ts"

const long = stalledMillisMax
const quiet = {
  endedMillis: 10 * long,
  takenMillis: 0,
  reason: undefined,
  refusedMillis: 0
} as const
const well = { cappedAt: undefined, trouble: undefined }
const fine: ReaderState = {
  reader: "planner",
  messages: 0,
  dueMillis: undefined,
  work: quiet,
  consumer: well,
  processes: 2,
  refusal: undefined
}
const due = { messages: 5, dueMillis: long }

describe("a reader", () => {
  it.for([
    ["has nothing to do", {}],
    ["lets messages wait for less than two minutes", { messages: 5, dueMillis: long - 1 }],
    ["ended a message a moment ago", { ...due, work: { ...quiet, endedMillis: 1 } }],
    ["has 10,000 that wait as they are meant to", { messages: 10_000 }],
    ["has a message in hand for less than two minutes", { work: { ...quiet, takenMillis: 1 } }],
    [
      "is changed, and changed back",
      { ...due, dueMillis: 1, consumer: { ...well, trouble: "changed" } }
    ],
    ["was refused messages a moment ago", { work: { ...quiet, refusedMillis: 1_000 } }]
  ] as const)("is at work where it %s", ([, state]) => {
    assert.isUndefined(troubleOf({ ...fine, ...state } as ReaderState))
  })

  it.for([
    ["missing", { consumer: { ...well, trouble: "missing" } }, /^planner is missing$/],
    ["paused", { consumer: { ...well, trouble: "paused" } }, /^planner is paused$/],
    ["nobody's role", { ...due, processes: 0 }, /5 wait .* no process runs the role fanout: start/],
    ["capped", { ...due, consumer: { ...well, cappedAt: 9 } }, /9 messages .* max_ack_pending/],
    [
      "failing",
      { messages: 1, work: { ...quiet, takenMillis: long, reason: "their handler fails" } },
      /messages are taken and none ends: their handler fails$/
    ],
    ["stuck", { messages: 1, work: { ...quiet, takenMillis: long } }, /2 processes run the role/],
    [
      "refused its messages",
      { work: { ...quiet, refusedMillis: refusedMillisMax } },
      /^planner: NATS has refused messages to a process for 60 s/
    ],
    [
      "refused something else",
      { ...due, refusal: { reason: "maximum subscriptions exceeded", millis: 1_000 } },
      /NATS refused this process something: maximum subscriptions exceeded$/
    ],
    ["idle", due, /^planner: 5 wait and none ended for 120 s; 2 processes run the role fanout/],
    ["a follower that is idle", { ...due, reader: "tally", consumer: undefined }, /role tally/]
  ] as const)("is not, and says why, where it is %s", ([, state, words]) => {
    assert.match(troubleOf({ ...fine, ...state } as ReaderState) ?? "", words)
  })
})

it("a subscription that NATS refuses is named for a minute", () => {
  const reason = "maximum subscriptions exceeded"
  assert.include(subscriptionFault({ reason, millis: 1_000 }), reason)
  assert.isUndefined(subscriptionFault({ reason, millis: refusedMillisMax }))
  assert.isUndefined(subscriptionFault({ reason: "maximum payload exceeded", millis: 1_000 }))
  assert.isUndefined(subscriptionFault(undefined))
})

describe("the work of all processes", () => {
  /** What a process knows after it heard these reports of itself at 0. */
  const heard = (...reports: ReadonlyArray<WorkTally>) => {
    const list = new ProcessList("0")
    list.begin(0)
    for (const [n, tally] of reports.entries())
      list.receive({ v: 1, process: String(n), roles: ["fanout"], work: tally.report(0) }, 0)
    return list
  }

  it("ends where a message ended in any of them", () => {
    const [idle, busy] = [new WorkTally(), new WorkTally()]
    idle.take("planner", 1, -500_000)
    busy.take("planner", 2, -400_000)
    busy.end("planner", 2, -1_000)
    const { endedMillis, takenMillis } = heard(idle, busy).work("planner", 2_000)
    assert.deepEqual([endedMillis, takenMillis], [2_000, 502_000])
  })

  it("does not end where messages are taken again and again", () => {
    const tally = new WorkTally()
    for (let at = -300_000; at <= 0; at += 5_000) {
      tally.take("planner", 1, at)
      tally.hinder("planner", 1, "their handler fails", at)
    }
    const { endedMillis, reason, takenMillis } = heard(tally).work("planner", 0)
    assert.deepEqual([takenMillis, reason], [300_000, "their handler fails"])
    assert.equal(endedMillis, 0, "nobody listened before")
  })

  it("forgets what another process took over, and not what is in hand", () => {
    const tally = new WorkTally()
    tally.take("planner", 1, -200_000)
    tally.hinder("planner", 1, "x", -200_000)
    assert.equal(heard(tally).work("planner", 0).takenMillis, 0)
    tally.take("planner", 2, -200_000)
    assert.equal(heard(tally).work("planner", 0).takenMillis, 200_000)
  })

  it("goes on after a refusal as soon as NATS accepts", () => {
    const tally = new WorkTally()
    tally.refuse("retry", -90_000)
    tally.refuse("retry", -1_000)
    assert.equal(heard(tally).work("retry", 0).refusedMillis, 90_000)
    tally.accept("retry")
    assert.equal(heard(tally).work("retry", 0).refusedMillis, 0)
  })
})
