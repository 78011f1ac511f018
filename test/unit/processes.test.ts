// What a process knows of the roles that others run, from what they announce.
import { assert, describe, it } from "vitest"
import { absentMillisMax, rolesFault } from "#monitoring/health.ts"
import { ProcessList } from "#nats/connection/processes.ts"

const announcement = (process: string, ...roles: ReadonlyArray<string>) => ({
  v: 1,
  process,
  roles
})

/** A list that has heard its own process `me` since 0, with the role gateway. */
const started = () => {
  const list = new ProcessList("me")
  list.begin(0)
  return list
}

/** Announces `me`, and others, every three seconds. */
const hear = (list: ProcessList, from: number, to: number, ...others: ReadonlyArray<object>) => {
  for (let now = from; now <= to; now += 3_000)
    for (const body of [announcement("me", "gateway"), ...others]) list.receive(body, now)
}

const stateOf = (list: ProcessList, role: string, now: number) =>
  list.states(now).find((state) => state.role === role)!

const faultAt = (list: ProcessList, now: number) =>
  rolesFault({ isKnown: () => list.isKnown(now), states: () => list.states(now) })

const everyRole = ["gateway", "projection", "fanout", "delivery", "tally"]

describe("the processes that announce themselves", () => {
  it("are counted by role, each once", () => {
    const list = started()
    hear(list, 0, 30_000, announcement("a", "delivery", "tally"), announcement("b", "delivery"))
    assert.deepEqual(
      list.states(30_000).map(({ processes, role }) => [role, processes]),
      [
        ["gateway", 1],
        ["projection", 0],
        ["fanout", 0],
        ["delivery", 2],
        ["tally", 1]
      ]
    )
  })

  it("are forgotten after ten seconds of silence, and at once when they end", () => {
    const list = started()
    hear(list, 0, 9_000, announcement("a", "delivery"), announcement("b", "tally"))
    list.receive(announcement("b"), 10_000)
    hear(list, 12_000, 18_000)
    assert.equal(stateOf(list, "tally", 18_000).processes, 0)
    assert.equal(stateOf(list, "tally", 18_000).absentMillis, 8_000)
    assert.equal(stateOf(list, "delivery", 19_000).processes, 1)
    assert.equal(stateOf(list, "delivery", 19_001).processes, 0)
  })

  it("are a fault when nobody ran a role for a minute, and none before", () => {
    const list = started()
    hear(list, 0, 30_000, announcement("a", ...everyRole))
    hear(list, 33_000, 90_000)
    assert.isUndefined(faultAt(list, 30_000 + absentMillisMax - 1))
    assert.match(
      faultAt(list, 30_000 + absentMillisMax)!,
      /^no process runs the role projection, fanout, delivery, tally \(for 60 s\): start one/
    )
    hear(list, 93_000, 93_000, announcement("c", ...everyRole))
    assert.isUndefined(faultAt(list, 93_000))
  })

  it("are a fault for a process that starts alone only after a minute", () => {
    const list = started()
    hear(list, 0, absentMillisMax)
    assert.isUndefined(faultAt(list, absentMillisMax - 1))
    assert.match(faultAt(list, absentMillisMax)!, /projection, fanout, delivery, tally/)
  })

  it("keep their state while NATS is away, and have ten seconds when it is back", () => {
    const list = started()
    hear(list, 0, 30_000, announcement("a", ...everyRole))
    assert.equal(stateOf(list, "delivery", 200_000).processes, 1)
    list.receive(announcement("me", "gateway"), 200_000)
    assert.equal(stateOf(list, "delivery", 200_000).absentMillis, 0)
    hear(list, 203_000, 200_000 + absentMillisMax)
    assert.equal(stateOf(list, "delivery", 215_000).absentMillis, 15_000)
    assert.isUndefined(faultAt(list, 200_000 + absentMillisMax - 1))
  })

  it("are unknown when the own announcements do not come back", () => {
    const list = new ProcessList("me")
    assert.isTrue(list.isKnown(1_000_000), "before it announces anything")
    list.begin(0)
    assert.isTrue(list.isKnown(10_000))
    assert.isFalse(list.isKnown(10_001))
    assert.match(faultAt(list, 10_001)!, /^NATS does not bring back/)
  })

  it("are at most a thousand, and what has another form is ignored", () => {
    const list = started()
    for (let n = 0; n < 2_000; n++) list.receive(announcement(`p${n}`, "tally"), 0)
    list.receive(announcement("me", "gateway", "a role of another version"), 1)
    for (const body of [null, 1, "x", [], { v: 2, process: "z", roles: ["tally"] }, { v: 1 }])
      list.receive(body, 1)
    assert.equal(stateOf(list, "tally", 1).processes, 1_000)
  })
})

describe("the number of a message that all processes read", () => {
  const plans = (process: string, plan?: number) => ({
    ...announcement(process, "fanout"),
    ...(plan === undefined ? {} : { reads: { plan } })
  })
  const hearAll = (list: ProcessList, from: number, to: number, ...all: ReadonlyArray<object>) => {
    for (let now = from; now <= to; now += 3_000) for (const each of all) list.receive(each, now)
  }

  it("is the lowest that one of them announces, and 1 of what is not announced", () => {
    const list = started()
    hearAll(list, 0, 12_000, plans("me", 3), plans("a", 2))
    assert.equal(list.readByAll("plan", 12_000), 2)
    assert.equal(list.readByAll("outcome", 12_000), 1)
    hearAll(list, 12_000, 12_000, plans("a version from before numbers"))
    assert.equal(list.readByAll("plan", 12_000), 1)
  })

  it("is 1 until the process has heard itself for ten seconds", () => {
    const list = started()
    assert.equal(list.readByAll("plan", 20_000), 1, "before it heard anything")
    hearAll(list, 30_000, 39_000, plans("me", 2))
    assert.equal(list.readByAll("plan", 39_999), 1)
    assert.equal(list.readByAll("plan", 40_000), 2)
  })

  it("is 1 after a loss of the connection, and where the own announcements stay away", () => {
    const list = started()
    hearAll(list, 0, 30_000, plans("me", 2))
    assert.equal(list.readByAll("plan", 40_000), 2)
    assert.equal(list.readByAll("plan", 40_001), 1)
    hearAll(list, 33_000, 60_000, plans("me", 2))
    list.reconnect(60_000)
    assert.equal(list.readByAll("plan", 60_000), 1)
    hearAll(list, 63_000, 70_000, plans("me", 2))
    assert.equal(list.readByAll("plan", 70_000), 2)
  })

  it("counts a process that drains, until it ends, and one that is silent, for ten seconds", () => {
    const list = started()
    const draining = announcement("a", "none")
    hearAll(list, 0, 12_000, plans("me", 2), draining)
    assert.equal(list.readByAll("plan", 12_000), 1)
    list.receive(announcement("a"), 13_000)
    assert.equal(list.readByAll("plan", 13_000), 2)
    hearAll(list, 15_000, 15_000, plans("me", 2), draining)
    hearAll(list, 18_000, 24_000, plans("me", 2))
    assert.equal(list.readByAll("plan", 25_000), 1)
    assert.equal(list.readByAll("plan", 25_001), 2)
  })
})
