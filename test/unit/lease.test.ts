// A lease that cannot be renewed in time: what the log says of it.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { monotonicMillis } from "#clock/clocks.ts"
import { NatsUnavailable } from "#nats/connection/errors.ts"
import { type Lease, newPace, renew } from "#nats/follower/lease.ts"
import type { Buckets } from "#nats/kv/bucket.ts"
import { errorFields } from "#telemetry/redaction.ts"

/** NATS stores nothing. */
const silent = { put: () => Effect.never } as unknown as Buckets["Service"]

/** The cause, where the last renewal began so many milliseconds ago. */
const lostAfter = async (millis: number) => {
  const sentAt = (await Effect.runPromise(monotonicMillis)) - millis
  const lease: Lease = {
    ...{ follower: "tally", holder: "this", revision: 1 },
    ...{ sentAt, seconds: 2, pace: newPace() }
  }
  const error = await Effect.runPromise(Effect.flip(renew(silent, lease)))
  assert.instanceOf(error, NatsUnavailable)
  const { cause, ...fields } = errorFields(error) as { cause: { message: string } }
  assert.deepEqual(fields as object, {
    type: "NatsUnavailable",
    operation: "renew the lease of tally",
    message: "another process has the lease, or may have it soon"
  })
  return cause.message
}

it("says whether the process or NATS was late", async () => {
  assert.match(await lostAfter(10_000), /^this process did nothing for 2 s/)
  assert.match(await lostAfter(-1_000), /^NATS stored no renewal within \d+ ms$/)
})
