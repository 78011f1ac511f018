// What is wrong with a NATS that stores nothing: an error code alone does not say.
import { assert, it } from "vitest"
import { Diagnosis, holdersOf } from "#nats/watch/server-health.ts"

const kinds = ["frozen", "disabled", "leaderless"] as const

it("calls a cluster leaderless while no majority of its servers runs", () => {
  for (const kind of kinds) {
    const diagnosis = new Diagnosis()
    assert.equal(diagnosis.correct(kind, { running: 1, all: 3 }, 0), "leaderless")
    assert.equal(diagnosis.correct(kind, { running: 2, all: 4 }, 60_000), "leaderless")
  }
})

it("blames the disks where a majority runs for longer than an election", () => {
  const diagnosis = new Diagnosis()
  const at = (running: number, now: number) =>
    diagnosis.correct("leaderless", { running, all: 3 }, now)
  assert.equal(at(3, 0), "leaderless")
  assert.equal(at(3, 30_000), "frozen")
  // Two are lost, and come back: they elect.
  assert.equal(at(1, 40_000), "leaderless")
  assert.equal(at(3, 50_000), "leaderless")
  // A stream whose leader is elected first stores nothing yet.
  assert.equal(diagnosis.correct("frozen", { running: 3, all: 3 }, 51_000), "leaderless")
  assert.equal(at(3, 80_000), "frozen")
  diagnosis.forget()
  assert.equal(at(3, 90_000), "leaderless")
  assert.equal(diagnosis.correct("disabled", { running: 3, all: 3 }, 90_000), "disabled")
})

it("believes the error code where nobody knows how many servers run", () => {
  for (const kind of kinds) {
    const told = kind === "leaderless" ? "unknown" : kind
    assert.equal(new Diagnosis().correct(kind, undefined, 0), told)
  }
})

const away = undefined

it("counts the servers that hold a stream, not those of the cluster", () => {
  const three = ["a", "b", "c"]
  assert.deepEqual(holdersOf(three, ["a", away, away, "d", "e"]), { running: 1, all: 3 })
  assert.deepEqual(holdersOf(["c"], ["a", "b", away]), { running: 0, all: 1 })
  assert.deepEqual(holdersOf(three, [...three, away, away]), { running: 3, all: 3 })
})

it("does not know them where a holder is not listed, or a server tells no name", () => {
  const three = ["a", "b", "c"]
  // One name of all servers, as in Kubernetes.
  assert.isUndefined(holdersOf(three, ["a"]))
  assert.isUndefined(holdersOf(three, ["a", "", away]))
  assert.isUndefined(holdersOf([], three))
})
