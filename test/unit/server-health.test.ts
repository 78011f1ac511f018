// What is wrong with a NATS that stores nothing: an error code alone does not say.
import { assert, it } from "vitest"
import { Diagnosis } from "#nats/watch/server-health.ts"

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
    assert.equal(new Diagnosis().correct(kind, undefined, 0), kind)
    assert.equal(new Diagnosis().correct(kind, { running: 1, all: 1 }, 60_000), kind)
  }
})
