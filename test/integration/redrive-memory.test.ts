// A worker reads the pushes of a redrive, and keeps them until a minute after its last shard.
import { Effect } from "effect"
import { assert, it } from "vitest"
import { makeRedriveFilter } from "#delivery/recipients/audience.ts"
import type { ShardJob } from "#domain/job.ts"
import { startProgress } from "#domain/progress.ts"
import { CacheMemory, Caches, unusedSweeps } from "#memory/cache-memory.ts"
import { provision } from "#nats/admin/provision.ts"
import { natsLayer } from "#nats/layer.ts"
import { EventLog } from "#nats/stream/event-log.ts"
import { subjects } from "#streams/subjects.ts"
import { channelToken } from "#streams/tokens.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { tokenOf } from "../support/users.ts"

const channel = channelToken("news")
const user = tokenOf("user0")
const [redriven, broadcast, other] = [7, 8, 9]

const job: ShardJob = {
  broadcast,
  channel,
  acceptedAt: Date.now() + 60_000,
  expiresAt: Date.now() + 120_000,
  urgency: "normal",
  shard: "all",
  redrives: redriven,
  floor: { subscriptions: 0, registrations: 0 }
}

const keys = { p256dh: "", auth: "" }
const targets = ["dead", "delivered"].map((id) => ({
  user,
  id,
  stored: { data: { endpoint: "https://push.example.org/1", keys }, seq: 1, lastModified: 1 }
}))

const results = targets.map(({ id }) => ({
  user,
  subscription: id,
  fate: id as "dead" | "delivered",
  reason: id === "dead" ? ("unexpected" as const) : ("accepted" as const),
  attempt: 1,
  millis: 1,
  at: Date.now()
}))

it("keeps the pushes of four redrives until a minute after their last shards", async () => {
  await using nats = await startNats({ syncAlways: false })
  const caches = new CacheMemory(1024 ** 2)
  const program = Effect.gen(function* () {
    yield* provision(1)
    yield* (yield* EventLog).once("work", {
      subject: subjects.shardOutcome(channel, redriven, "all"),
      type: "outcome",
      body: { broadcast: redriven, pushes: 2, results, final: true, at: Date.now() }
    })
    const filter = yield* makeRedriveFilter
    const reached = (of: ShardJob) =>
      Effect.map(filter(of, targets), (found) => found.map(({ id }) => id))
    for (let sweep = 0; sweep <= unusedSweeps; sweep++) {
      assert.deepEqual(yield* reached(job), ["dead"])
      caches.dropUnused()
      assert.isAbove(caches.bytesOf("redrives"), 0)
    }
    for (let sweep = 0; sweep <= unusedSweeps; sweep++) caches.dropUnused()
    assert.equal(caches.bytesOf("redrives"), 0)
    assert.deepEqual(yield* reached(job), ["dead"])
    const kept = caches.bytesOf("redrives")
    // The outcomes are gone: a redrive that reads them again reaches nobody.
    yield* Effect.promise(async () => {
      await using admin = await connectAdmin(nats.url)
      await admin.jsm.streams.purge("BELLCAST_WORK")
    })
    const next = (n: number) => reached({ ...job, broadcast: other + n, redrives: broadcast })
    for (let n = 0; n < 3; n++) {
      assert.deepEqual(yield* next(n), [])
      assert.deepEqual(yield* reached(job), ["dead"])
    }
    assert.equal(caches.bytesOf("redrives"), kept)
    // The one that was used least recently makes way, here this one.
    for (let n = 0; n < 4; n++) assert.deepEqual(yield* next(n), [])
    assert.equal(caches.bytesOf("redrives"), 0)
    assert.deepEqual(yield* reached(job), [])
  })
  await Effect.runPromise(
    program.pipe(
      Effect.provide(natsLayer({ url: nats.url, name: "test" })),
      Effect.provideService(Caches, caches)
    )
  )
})

it("counts all outcomes of a broadcast that had finished, whatever the clocks say", async () => {
  await using nats = await startNats({ syncAlways: false })
  const program = Effect.gen(function* () {
    yield* provision(1)
    const { append, last, once } = yield* EventLog
    const subject = subjects.shardOutcome(channel, redriven, "all")
    const body = { broadcast: redriven, pushes: 2, results, final: true, at: Date.now() }
    yield* once("work", { subject, type: "outcome", body })
    const { seq } = (yield* last("work", subject))!
    // As the clock of the server says that leads LOG: a minute behind.
    const early = { ...job, acceptedAt: Date.now() - 60_000 }
    const reached = Effect.flatMap(makeRedriveFilter, (filter) =>
      Effect.map(filter(early, targets), (found) => found.map(({ id }) => id))
    )
    assert.deepEqual(yield* reached, [], "outcomes of one that goes on")
    const { acceptedAt, expiresAt, floor } = job
    const plan = { broadcast: redriven, depth: 0, shards: 1, floor, acceptedAt, expiresAt, at: 1 }
    yield* append("log", {
      subject: subjects.finished(channel, redriven),
      type: "broadcast.finished",
      body: startProgress(plan, seq)
    })
    assert.deepEqual(yield* reached, ["dead"])
  })
  await Effect.runPromise(program.pipe(Effect.provide(natsLayer({ url: nats.url, name: "test" }))))
})
