// Paused broadcasts: nobody is sent to meanwhile, and after a resume nobody was missed.
import { assert, describe, it } from "vitest"
import {
  broadcastPath,
  changeState,
  fewPermits,
  heldMillis,
  untilShown
} from "../support/broadcast-states.ts"
import { finishedAt, join, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { elapsed, unchanged } from "../support/quiet.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { useService } from "../support/use-service.ts"

const size = 400
// At once: they wait more than they work.
describe.concurrent("a broadcast that is paused", () => {
  const shared = useService({ env: fewPermits })

  it("is held within a second and goes on, twice, without a push too few or too many", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using push = await spawnPushService()
    await using service = await startService({ natsUrl: nats.url, env: fewPermits })
    const browsers = await push.subscribe(size, { script: ["slow 1200"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    const id = await publish(service.url, "news", { n: 1 })
    for (const some of [70, 200]) {
      await push.waitForDistinct(some, 30_000)
      await changeState(service.url, id, "paused")
      await elapsed(heldMillis)
      const begun = await unchanged(async () => (await push.report()).counts.total, 1_500)
      assert.isBelow(begun, size)
      const held = await untilShown(service.url, id, ({ delivered }) => delivered >= begun)
      assert.deepInclude(held, { state: "paused", finished: false, delivered: begun })
      await changeState(service.url, id, "running")
    }
    // A moment between them, so that both are heard while pushes are under way.
    await changeState(service.url, id, "paused")
    await changeState(service.url, id, "running")
    const done = await finishedAt(service.url, broadcastPath(id), "publisher", 60_000)
    assert.deepInclude(done, { state: "finished", accepted: size, delivered: size, cancelled: 0 })
    const { counts, faults } = await push.report()
    assert.deepEqual([counts.distinct, counts.duplicates, faults], [size, 0, []])
  })

  it("goes on at once with the shard and the retry that were under way at the pause", {
    timeout: 60_000
  }, async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const agents = Array.from({ length: 200 }, () => push.subscribe({ script: ["slow 1000"] }))
    const retried = push.subscribe({ script: ["503", "slow 3000"] })
    const subscriptions = agents.map(({ subscription }) => subscription)
    await fillChannels(nats.url, [
      { name: "large", subscriptions },
      { name: "small", subscriptions: [retried.subscription] }
    ])
    const [large, small] = await Promise.all([
      publish(service.url, "large", { n: 1 }),
      publish(service.url, "small", { n: 2 })
    ])
    await push.waitFor(() => retried.attempts.length === 2)
    for (const state of ["paused", "running"])
      await Promise.all([large, small].map((id) => changeState(service.url, id, state)))
    const done = await finishedAt(service.url, broadcastPath(large), "publisher", 20_000)
    assert.deepInclude(done, { accepted: 200, delivered: 200 })
    assert.deepInclude(await finishedAt(service.url, broadcastPath(small)), { delivered: 1 })
    assert.equal(retried.attempts.length, 2)
    assert.deepInclude(push.counts, { distinct: 201, duplicates: 0 })
  })

  it("sends a push that takes longer than the ack wait once", { timeout: 90_000 }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = { BELLCAST_PUSH_TIMEOUT_MILLIS: "30000" }
    await using service = await startService({ natsUrl: nats.url, env })
    const slow = push.subscribe({ script: ["slow 22000", "201"] })
    await join([service.url], "news", [slow.subscription])
    const id = await publish(service.url, "news", { n: 1 })
    await push.waitFor(() => slow.attempts.length === 1)
    for (const state of ["paused", "running"]) await changeState(service.url, id, state)
    const done = await finishedAt(service.url, broadcastPath(id))
    assert.deepInclude(done, { delivered: 1 })
    assert.equal(slow.attempts.length, 1)
  })

  it("ends the retries that a resume has not begun again when it is cancelled then", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    await using service = await startService({ natsUrl: nats.url })
    await using admin = await connectAdmin(nats.url)
    const late = push.subscribe({ script: ["503 retry-after 8", "201"] })
    await join([service.url], "news", [late.subscription])
    const id = await publish(service.url, "news", { n: 1 })
    await untilShown(service.url, id, ({ retrying }) => retrying === 1)
    const waiting = async () =>
      (await admin.jsm.consumers.info("BELLCAST_WORK", "retry")).num_ack_pending
    await until(waiting, (jobs) => jobs === 1)
    await changeState(service.url, id, "paused")
    // The retry comes due, and its job is acknowledged unsent.
    await until(waiting, (jobs) => jobs === 0)
    for (const state of ["running", "cancelled"]) await changeState(service.url, id, state)
    const done = await finishedAt(service.url, broadcastPath(id))
    assert.deepInclude(done, { state: "cancelled", accepted: 1, cancelled: 1, retrying: 0 })
    assert.equal(late.attempts.length, 1)
  })

  it("tries retries again after a resume, those that came due meanwhile and those that wait", {
    timeout: 90_000
  }, async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const scripts = [["503 retry-after 6", "201"], ["503 retry-after 25", "201"], ["slow 6500 503"]]
    const agents = scripts.map((script) => push.subscribe({ script: [...script, "201"] }))
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const id = await publish(service.url, "news", { n: 1 })
    await untilShown(service.url, id, ({ retrying }) => retrying === 2)
    const attempts = () => agents.map((agent) => agent.attempts.length)
    await push.waitFor(() => attempts().every((made) => made === 1))
    await changeState(service.url, id, "paused")
    // The first retry comes due, and the third attempt fails.
    assert.deepEqual(await unchanged(attempts, 8_000), [1, 1, 1])
    const { code, stdout } = await runCli(["broadcast", "resume", id, "--nats", nats.url])
    assert.deepEqual([code, stdout], [0, `broadcast ${id} is running\n`])
    const done = await finishedAt(service.url, broadcastPath(id), "publisher", 60_000)
    assert.deepInclude(done, { state: "finished", accepted: 3, delivered: 3 })
    assert.deepEqual(attempts(), [2, 2, 2])
  })

  it("counts its rest as cancelled when it is cancelled, and as expired when its life ends", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using push = await spawnPushService()
    await using service = await startService({ natsUrl: nats.url, env: fewPermits })
    const browsers = await push.subscribe(size, { script: ["503 retry-after 1", "slow 500"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    const publishAndPause = async (n: number) => {
      const id = await publish(service.url, "news", { n }, { TTL: "30" })
      await untilShown(service.url, id, ({ delivered, retrying }) => retrying + delivered > 50)
      await changeState(service.url, id, "paused")
      return id
    }
    const cancelled = await publishAndPause(1)
    const expired = await publishAndPause(2)
    await elapsed(heldMillis)
    // Retries come due.
    await unchanged(async () => (await push.report()).counts.requests, 2_000)
    await changeState(service.url, cancelled, "cancelled")
    const first = await finishedAt(service.url, broadcastPath(cancelled), "publisher", 60_000)
    assert.deepInclude(first, { state: "cancelled", accepted: size, expired: 0 })
    assert.equal(first.delivered + first.cancelled, size)
    const second = await finishedAt(service.url, broadcastPath(expired), "publisher", 60_000)
    assert.deepInclude(second, { state: "finished", accepted: size, cancelled: 0 })
    assert.equal(second.delivered + second.expired, size)
    assert.isAbove(second.expired, size / 4)
    const { counts, faults } = await push.report()
    assert.equal(counts.total, first.delivered + second.delivered)
    assert.deepEqual(faults, [])
  })
})
