import { setImmediate as settled } from "node:timers/promises"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { assert, describe, it } from "vitest"
import { makeAdmission } from "#delivery/recipients/admission.ts"
import type { Audience } from "#delivery/recipients/audience.ts"
import type { ShardJob } from "#domain/job.ts"
import { type NatsUnavailable, unavailable } from "#nats/connection/errors.ts"

const nobody: Audience = { targets: [], check: () => Effect.void }
const to = { channels: [], users: [], except: [] }

/** An admission whose reads end when the test calls `end`. */
const make = () => {
  const reads = new Map<string, Deferred.Deferred<Audience, NatsUnavailable>>()
  const nameOf = ({ broadcast, shard }: Pick<ShardJob, "broadcast" | "shard">) =>
    `${broadcast} ${shard}`
  const audience = (job: ShardJob) =>
    Effect.suspend(() => {
      const read = Deferred.makeUnsafe<Audience, NatsUnavailable>()
      reads.set(nameOf(job), read)
      return Deferred.await(read)
    })
  const admitted = makeAdmission(audience, 768)
  return {
    /** The reads that began and have not ended, by broadcast and shard. */
    reading: () => [...reads.keys()],
    begin: (broadcast: number, shard: string) => {
      const job: ShardJob = {
        broadcast,
        shard,
        channel: "news",
        acceptedAt: 0,
        expiresAt: 1,
        urgency: "normal",
        floor: { subscriptions: 0, registrations: 0 }
      }
      void Effect.runFork(Effect.ignore(admitted(job, to)))
    },
    end: async (name: string, error?: Error) => {
      const read = reads.get(name)!
      reads.delete(name)
      Deferred.doneUnsafe(
        read,
        error === undefined ? Effect.succeed(nobody) : Effect.fail(unavailable("read")(error))
      )
      await settled()
    }
  }
}

describe("the shards of a broadcast", () => {
  it("are read after the first one, so that it is sent early", async () => {
    const { begin, end, reading } = make()
    for (const shard of ["0.0", "0.1", "0.2"]) begin(1, shard)
    await settled()
    assert.deepEqual(reading(), ["1 0.0"])
    await end("1 0.0")
    assert.deepEqual(reading(), ["1 0.1", "1 0.2"])
    begin(1, "0.3")
    await settled()
    assert.deepEqual(reading(), ["1 0.1", "1 0.2", "1 0.3"])
  })

  it("are read although reading the first one failed, and beside those of others", async () => {
    const { begin, end, reading } = make()
    begin(1, "0.0")
    begin(1, "0.1")
    begin(2, "0.0")
    begin(3, "all")
    await settled()
    assert.deepEqual(reading(), ["1 0.0", "2 0.0", "3 all"])
    await end("1 0.0", new Error("NATS is away"))
    assert.deepEqual(reading(), ["2 0.0", "3 all", "1 0.1"])
  })
})
