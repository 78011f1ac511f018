// The counts of a broadcast: what each message about it changes.
import { assert, describe, it } from "@effect/vitest"
import { evolveProgress, startProgress, waiting } from "#domain/progress.ts"
import { outcome, plan } from "#test/outcome-messages.ts"

describe("the progress of a broadcast", () => {
  const started = startProgress(plan(2), 3)

  it("begins with nothing accepted and carries what its plan says", () => {
    const { acceptedAt, broadcast, expiresAt } = plan(2)
    assert.deepInclude(started, {
      broadcast,
      acceptedAt,
      expiresAt,
      shards: 2,
      shardsDone: 0,
      seq: 3,
      lastModified: 1_005
    })
    assert.deepInclude(started, {
      accepted: 0,
      delivered: 0,
      retrying: 0,
      gone: 0,
      dead: 0,
      expired: 0,
      finished: false
    })
    assert.strictEqual(waiting(started), 0)
  })

  it("is finished at once when nobody is registered", () => {
    assert.isTrue(startProgress(plan(0), 3).finished)
  })

  it("shows the pushes of a shard as waiting until they have a fate", () => {
    const first = evolveProgress(started, outcome(5, ["delivered", "gone"], false), "shard", 4)
    assert.deepInclude(first, {
      accepted: 5,
      delivered: 1,
      gone: 1,
      shardsDone: 0,
      seq: 4,
      lastModified: 1_010
    })
    assert.strictEqual(waiting(first), 3)
    const second = evolveProgress(
      first,
      outcome(0, ["dead", "expired", "retrying"], true),
      "shard",
      5
    )
    assert.deepInclude(second, {
      accepted: 5,
      dead: 1,
      expired: 1,
      retrying: 1,
      shardsDone: 1,
      finished: false
    })
    assert.strictEqual(waiting(second), 0)
  })

  it("takes back pushes that turned out not to be there", () => {
    const first = evolveProgress(started, outcome(5, ["delivered"], false), "shard", 4)
    assert.strictEqual(evolveProgress(first, outcome(-4, [], true), "shard", 5).accepted, 1)
  })

  it("moves a retried push from retrying to its outcome, and keeps the number of shards", () => {
    const first = evolveProgress(started, outcome(2, ["retrying", "retrying"], true), "shard", 4)
    const again = evolveProgress(first, outcome(0, ["retrying"], false), "push", 5)
    assert.deepInclude(again, { retrying: 2, accepted: 2, shardsDone: 1 })
    const done = evolveProgress(again, outcome(0, ["delivered"], true), "push", 6)
    assert.deepInclude(done, { retrying: 1, delivered: 1, shardsDone: 1, finished: false })
  })

  it("counts what was cancelled, of those that waited and of those that were retrying", () => {
    const first = evolveProgress(started, outcome(3, ["retrying", "cancelled"], true), "shard", 4)
    assert.deepInclude(first, { accepted: 3, retrying: 1, cancelled: 1 })
    assert.strictEqual(waiting(first), 1)
    const done = evolveProgress(first, outcome(0, ["cancelled"], true), "push", 5)
    assert.deepInclude(done, { retrying: 0, cancelled: 2 })
    assert.notProperty(started, "cancelled")
  })

  it("is not finished while a push has no fate, although every shard says that it is done", () => {
    const first = evolveProgress(
      startProgress(plan(1), 3),
      outcome(3, ["delivered"], true),
      "shard",
      4
    )
    assert.deepInclude(first, { shardsDone: 1, finished: false })
  })

  it("never moves its timestamp back", () => {
    assert.strictEqual(
      evolveProgress(started, outcome(0, [], true, 7), "shard", 4).lastModified,
      1_005
    )
  })
})
