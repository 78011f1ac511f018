// Which attempt a retry job leads to, and in which run of its broadcast the push counts.
import { assert, describe, it } from "@effect/vitest"
import { nextAttemptOf } from "#delivery/jobs/result.ts"
import type { Stored } from "#nats/stream/stored.ts"

const job = (attempts: number, run?: number, firstRun?: number) => ({
  attempts,
  reason: "timeout" as const,
  ...(run === undefined ? {} : { run }),
  ...(firstRun === undefined ? {} : { firstRun })
})

const outcome = (attempt: number, run?: number) =>
  ({ seq: 9, message: { type: "outcome", results: [{ attempt }], run } }) as unknown as Stored

const next = (...given: Parameters<typeof nextAttemptOf>) => {
  const { firstRun, number } = nextAttemptOf(...given)
  return [number, firstRun]
}

describe("the next attempt of a push", () => {
  it("counts in the run in which the push is attempted first", () => {
    assert.deepEqual(next(job(0, 2), undefined, 0), [1, 2])
    assert.deepEqual(next(job(0, 2, 1), undefined, 0), [1, 2])
    assert.deepEqual(next(job(1, 2, 1), undefined, 0), [2, 1])
    assert.deepEqual(next(job(1, 2), undefined, 0), [2, undefined])
    assert.deepEqual(next(job(0, 3, 1), outcome(1, 2), 0), [2, 2])
    assert.deepEqual(next(job(0, 3), outcome(4), 0), [5, undefined])
    assert.deepEqual(next(job(0, 3), outcome(0, 1), 0), [1, 3])
  })
})
