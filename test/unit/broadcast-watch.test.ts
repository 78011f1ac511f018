// The standings of a broadcast that a watcher learns of: a replica may be behind.
import { assert, it } from "vitest"
import type { Standing } from "#broadcasts/state.ts"
import { follows } from "#broadcasts/watch.ts"
import { startProgress } from "#domain/progress.ts"
import type { Stored } from "#nats/stream/stored.ts"

const plan = {
  broadcast: 5,
  depth: 0,
  shards: 1,
  floor: { subscriptions: 0, registrations: 0 },
  acceptedAt: 0,
  expiresAt: 1,
  at: 0
}

/** `fact`: the sequence of the last change; `count`: that of the last outcome. */
const standing = (state: Standing["state"], fact = 0, count = 0): Standing => ({
  state,
  change: fact === 0 ? undefined : ({ seq: fact } as Stored),
  schedule: undefined,
  expiresAt: 1,
  progress:
    count === 0 ? undefined : { ...startProgress(plan, count), finished: state === "finished" },
  rejected: undefined
})

it.each([
  ["the same", standing("running", 3, 7), standing("running", 3, 7), false],
  ["another count", standing("running", 3, 7), standing("running", 3, 8), true],
  ["another state", standing("running", 3, 7), standing("paused", 4, 7), true],
  ["the end", standing("running", 3, 7), standing("finished", 3, 8), true],
  ["a rejection", standing("running"), standing("finished"), true],
  ["an older state", standing("paused", 4, 7), standing("running", 3, 7), false],
  ["an older count", standing("running", 3, 8), standing("running", 3, 7), false],
  ["an older count with a newer state", standing("running", 3, 8), standing("paused", 4, 7), false],
  ["no count any more", standing("running", 3, 8), standing("running", 3), false]
])("of %s a watcher learns only if it is newer", (_, known, found, isNews) => {
  assert.equal(follows(found, known), isNews)
})
