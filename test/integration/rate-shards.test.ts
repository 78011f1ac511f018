// A broadcast with a rate to so many that it has several shards, of which each leads to another.
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { call, finishedAt, publishAt } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { type Service, startService } from "../support/service.ts"
import { type SpawnedPushService, spawnPushService } from "../support/spawn-push-service.ts"

/** In 16 shards. */
const size = 1_100
/** Settings.unrecordedPushesMax: the most that one crash may send twice. */
const permits = 64

let nats: Awaited<ReturnType<typeof startNats>>
let push: SpawnedPushService
let gateway: Service
let worker: Service
const startWorker = () =>
  startService({
    natsUrl: nats.url,
    roles: "delivery",
    env: { BELLCAST_UNRECORDED_PUSHES_MAX: String(permits) }
  })

const changeState = (id: string, state: string) =>
  call(gateway.url, "PATCH", `/broadcasts/${id}`, "publisher", { data: { state } })

describe("a broadcast with a rate to many", { timeout: 120_000 }, () => {
  beforeAll(async () => {
    nats = await startNats()
    push = await spawnPushService()
    gateway = await startService({
      natsUrl: nats.url,
      roles: "gateway,projection,fanout,tally"
    })
    worker = await startWorker()
    const subscriptions = await push.subscribe(size)
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
  }, 180_000)
  afterAll(async () => {
    await worker.kill()
    await gateway.kill()
    await push[Symbol.asyncDispose]()
    await nats[Symbol.asyncDispose]()
  })

  it("reaches all, although it is paused, and its worker killed", async () => {
    await push.reset()
    const id = await publishAt(gateway.url, "/channels/news", { data: { n: 1 }, rate: 250 })
    await push.waitForDistinct(150, 30_000)
    await changeState(id, "paused")
    await changeState(id, "running")
    await push.waitForDistinct(500, 60_000)
    await worker.kill()
    worker = await startWorker()
    const done = await finishedAt(gateway.url, `/broadcasts/${id}`, "publisher", 90_000)
    assert.deepInclude(done, { accepted: size, delivered: size, shards: 16, shards_done: 16 })
    const { counts, faults } = await push.report()
    assert.equal(counts.distinct, size)
    assert.isAtMost(counts.duplicates, permits)
    assert.deepEqual(faults, [])
  })

  it("counts everybody in every shard when it is cancelled", async () => {
    await push.reset()
    const id = await publishAt(gateway.url, "/channels/news", { data: { n: 2 }, rate: 10 })
    await push.waitForDistinct(5, 30_000)
    await changeState(id, "cancelled")
    const done = await finishedAt(gateway.url, `/broadcasts/${id}`, "publisher")
    const { total: delivered } = (await push.report()).counts
    assert.deepInclude(done, { accepted: size, delivered, cancelled: size - delivered })
    assert.isBelow(delivered, 100)
  })

  it("counts everybody in every shard when its life ends before their turns", async () => {
    await push.reset()
    const body = { data: { n: 3 }, rate: 10 }
    const id = await publishAt(gateway.url, "/channels/news", body, { TTL: "0" })
    const done = await finishedAt(gateway.url, `/broadcasts/${id}`, "publisher")
    const { total: delivered } = (await push.report()).counts
    assert.deepInclude(done, { accepted: size, delivered, expired: size - delivered })
    assert.isBelow(delivered, 200)
  })
})
