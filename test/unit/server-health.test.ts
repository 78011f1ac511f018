// What is wrong with a NATS that stores nothing: an error code alone does not say.
import { assert, it } from "vitest"
import { correctedKind } from "#nats/watch/server-health.ts"

it("calls a cluster leaderless only while no majority of its servers runs", () => {
  for (const kind of ["frozen", "disabled", "leaderless"] as const) {
    assert.equal(correctedKind(kind, { running: 1, all: 3 }), "leaderless")
    assert.equal(correctedKind(kind, { running: 2, all: 4 }), "leaderless")
  }
  // All run: their disks are full.
  assert.equal(correctedKind("leaderless", { running: 3, all: 3 }), "frozen")
  assert.equal(correctedKind("leaderless", { running: 2, all: 3 }), "frozen")
  assert.equal(correctedKind("disabled", { running: 3, all: 3 }), "disabled")
})

it("believes the error code where the servers do not say how many run", () => {
  for (const kind of ["frozen", "disabled", "leaderless"] as const) {
    assert.equal(correctedKind(kind, undefined), kind)
    assert.equal(correctedKind(kind, { running: 1, all: 1 }), kind)
  }
})
