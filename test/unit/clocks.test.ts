// What a clock that jumps may change: nothing that this process waits for, and no wait of another
// process by more than was asked for.
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { ServiceClock } from "#clock/clocks.ts"
import { waitOf } from "#delivery/jobs/result.ts"
import { clockAhead } from "#delivery/push/post.ts"
import type { RetryJob } from "#domain/job.ts"
import type { Stored } from "#nats/stream/stored.ts"

const start = 1_800_000_000_000
const hour = 3_600_000

/** A machine whose clock can be set. */
const machine = (aheadMillis = 0) => {
  const state = { aheadMillis, passedMillis: 0 }
  const base: Clock.Clock = {
    ...Clock.Clock.defaultValue(),
    currentTimeMillisUnsafe: () => start + state.passedMillis + state.aheadMillis,
    monotonicTimeNanosUnsafe: () => BigInt(Math.round(state.passedMillis * 1e6))
  }
  const clock = new ServiceClock(base)
  /** A reading of a server whose clock is this much ahead; the request took 10 ms. */
  const read = (serverAheadMillis: number) => {
    const began = state.passedMillis
    state.passedMillis += 10
    const serverMillis = start + began + 4 + serverAheadMillis
    return clock.follow({ serverMillis, began, ended: state.passedMillis })
  }
  const wrongBy = () => clock.currentTimeMillisUnsafe() - (start + state.passedMillis)
  return { state, clock, read, wrongBy }
}

describe("the clock of the service", () => {
  it("runs on when the machine's is set, and says how far that one is off", () => {
    const { clock, state, wrongBy } = machine()
    for (const aheadMillis of [hour, -hour]) {
      state.aheadMillis = aheadMillis
      state.passedMillis += 5_000
      assert.strictEqual(wrongBy(), 0)
      assert.strictEqual(clock.aheadMillis(), aheadMillis)
    }
  })

  it.for([-hour, hour])("takes the server's time where the machine started %i ms off", (ahead) => {
    const { read, wrongBy } = machine(ahead)
    assert.strictEqual(wrongBy(), ahead)
    assert.closeTo(read(0), -ahead, 10)
    assert.closeTo(wrongBy(), 0, 5)
  })

  it("keeps its time within the bounds of a reading, and follows a server that is set", () => {
    const { read, wrongBy } = machine()
    for (const drift of [0, 3, -3]) assert.strictEqual(read(drift), 0)
    assert.strictEqual(wrongBy(), 0)
    assert.closeTo(read(hour), hour, 10)
    assert.closeTo(wrongBy(), hour, 5)
  })

  it.effect("is what an Effect reads, in whole milliseconds", () => {
    const { clock } = machine(0.25)
    return Effect.gen(function* () {
      assert.strictEqual(yield* Clock.currentTimeMillis, start)
    }).pipe(Effect.provideService(Clock.Clock, clock))
  })
})

const job: RetryJob = {
  broadcast: 1,
  channel: "news",
  acceptedAt: start,
  expiresAt: start + 24 * hour,
  urgency: "normal",
  user: "user",
  subscription: "id",
  generation: 1,
  firstWaitMillis: 10_000,
  attempts: 1,
  reason: "timeout"
}
/** The last outcome of the push, by a worker whose clock is this much ahead. */
const outcomeBy = (aheadMillis: number) => {
  const at = start + aheadMillis
  const result = { attempt: 2, millis: 5, at, nextAt: at + 20_000, fate: "retrying" }
  const message = { type: "outcome", results: [result] }
  return { at: start, message } as unknown as Stored
}
const given = { job, storedAt: start, isFirstDelivery: true }
const later = { ...given, isFirstDelivery: false }

describe("the wait of a push that is retried", () => {
  it.for([0, hour, -hour])("is the one that a worker %i ms ahead asked for", (ahead) => {
    assert.strictEqual(waitOf(given, undefined, start), 10_000)
    assert.strictEqual(waitOf(later, undefined, start + 10_000), 0)
    assert.strictEqual(waitOf(later, outcomeBy(ahead), start + 5_000), 15_000)
    assert.strictEqual(waitOf(later, outcomeBy(ahead), start + 20_000), 0)
  })

  it("is never longer, nor repeated, when the server's clock was set back", () => {
    assert.strictEqual(waitOf(given, undefined, start - hour), 10_000)
    assert.strictEqual(waitOf(later, undefined, start - hour), 0)
    assert.strictEqual(waitOf(later, outcomeBy(0), start - hour), 0)
  })

  it("is at most the longest Retry-After, and never negative", () => {
    const asked = (firstWaitMillis: number) =>
      waitOf({ ...given, job: { ...job, firstWaitMillis } }, undefined, start)
    assert.strictEqual(asked(1_000 * hour), 26.4 * hour)
    assert.strictEqual(asked(-hour), 0)
  })
})

it("tells a push service's clock from ours by its Date, from a minute on", () => {
  const date = new Date(start).toUTCString()
  assert.strictEqual(clockAhead(date, start + 59_000), 0)
  assert.strictEqual(clockAhead(date, start + hour), -hour)
  assert.strictEqual(clockAhead(date, start - hour), hour)
  for (const none of [undefined, "soon", "2026-11-20"]) assert.strictEqual(clockAhead(none, 0), 0)
})
