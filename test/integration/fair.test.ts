// Broadcasts that are sent at the same time share the service.
import { setTimeout as sleep } from "node:timers/promises"
import { assert, describe, it } from "vitest"
import { streams } from "#streams/index.ts"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { finishedAt, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { holdResponses } from "../support/held.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { type PushService, startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

/** Longer than each test waits: a push that is held must not end by itself. */
const held = { BELLCAST_PUSH_TIMEOUT_MILLIS: "60000" }
const few = { ...held, BELLCAST_PUSHES_UNDER_WAY_MAX: "32" }

/** `count` subscriptions of which the push service holds the responses until `respond`. */
const holding = (push: PushService, count: number) => {
  const agents = Array.from({ length: count }, () => push.subscribe())
  return {
    subscriptions: agents.map(({ subscription }) => subscription),
    received: () => agents.reduce((sum, { deliveries }) => sum + deliveries, 0),
    ...holdResponses(agents)
  }
}

describe.concurrent("broadcasts at the same time", () => {
  it("a small one is sent while every push of a large one waits for its push service", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using silent = await startPushService({ decrypt: false })
    await using prompt = await startPushService()
    const env = { ...few, BELLCAST_UNRECORDED_PUSHES_MAX: "64" }
    await using service = await startService({ natsUrl: nats.url, env })
    const large = holding(silent, 1_100)
    const small = prompt.subscribe()
    await fillChannels(nats.url, [
      { name: "large", subscriptions: large.subscriptions },
      { name: "small", subscriptions: [small.subscription] }
    ])
    await publish(service.url, "large", { n: 1 })
    await silent.waitFor(() => large.held() === 32, 20_000)
    const id = await publish(service.url, "small", { n: 2 })
    await prompt.waitFor(() => small.received.length === 1, 20_000)
    assert.deepInclude(await finishedAt(service.url, broadcastPath(id)), { delivered: 1 })
    assert.equal(large.held(), 32)
  })

  it("retries do not wait for those to another push service, which is slow", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using slow = await startPushService()
    await using prompt = await startPushService({ host: "localhost" })
    await using service = await startService({ natsUrl: nats.url, env: held })
    const script = ["503", "slow 20000 201"]
    const late = Array.from({ length: 150 }, () => slow.subscribe({ script }).subscription)
    const soon = prompt.subscribe({ script: ["503", "201"] })
    await fillChannels(nats.url, [
      { name: "late", subscriptions: late },
      { name: "soon", subscriptions: [soon.subscription] }
    ])
    await publish(service.url, "late", { n: 1 })
    await slow.waitFor(({ requests }) => requests >= late.length + 64, 20_000)
    await publish(service.url, "soon", { n: 2 })
    await prompt.waitFor(() => soon.received.length === 1, 10_000)
  })

  it("a large one that begins behind another gets as many pushes", {
    timeout: 180_000
  }, async () => {
    const [size, some] = [1_100, 500]
    await using nats = await startNats()
    await using push = await startPushService({ decrypt: false })
    const env = { ...few, BELLCAST_UNRECORDED_PUSHES_MAX: "256" }
    await using service = await startService({ natsUrl: nats.url, env })
    const [first, second] = [holding(push, size), holding(push, size)]
    await fillChannels(nats.url, [
      { name: "first", subscriptions: first.subscriptions },
      { name: "second", subscriptions: second.subscriptions }
    ])
    const ids = [await publish(service.url, "first", { n: 1 })]
    await push.waitFor(() => first.held() === 32, 20_000)
    ids.push(await publish(service.url, "second", { n: 2 }))
    // Slowly, so that the second one is planned and read meanwhile.
    while (second.received() === 0 && first.received() < size) {
      first.respondOnce()
      await sleep(20)
    }
    assert.isBelow(first.received(), size / 2)
    for (const each of [first, second]) each.respond()
    // Shards of the first one that have begun are sent first.
    await push.waitFor(() => second.received() >= 250, 30_000)
    const before = { first: first.received(), second: second.received() }
    await push.waitFor(({ counts }) => counts.total >= before.first + before.second + some, 30_000)
    const share = (second.received() - before.second) / some
    assert.approximately(share, 0.5, 0.1)
    for (const id of ids)
      assert.deepInclude(await finishedAt(service.url, broadcastPath(id)), { delivered: size })
  })

  it("jobs of a large one are appended as its shards begin, also those of a resumed run", {
    timeout: 180_000
  }, async () => {
    const size = 2_500
    await using nats = await startNats()
    await using push = await startPushService({ decrypt: false })
    const env = { ...few, BELLCAST_UNRECORDED_PUSHES_MAX: "64" }
    await using service = await startService({ natsUrl: nats.url, env })
    const browsers = holding(push, size)
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers.subscriptions }])
    const id = await publish(service.url, "news", { n: 1 })
    await push.waitFor(() => browsers.held() === 32, 20_000)
    await using admin = await connectAdmin(nats.url)
    const jobs = async () => {
      const subjects_filter = `bellcast.job.shard.${id}.>`
      const { state } = await admin.jsm.streams.info(streams.work.name, { subjects_filter })
      return Object.keys(state.subjects ?? {}).length
    }
    // 13 that wait at first, of 16; two shards of 156 have begun.
    assert.equal(await until(jobs, (count) => count >= 15), 15)
    const seqOf = async (last_by_subj: string) =>
      (await admin.jsm.streams.getMessage(streams.work.name, { last_by_subj }))!.seq
    // The claim is sent first. If it waited for the next job, it would be stored behind it.
    const claimedAt = await seqOf(`bellcast.outcome.news.${id}.shard.0`)
    assert.isBelow(claimedAt, await seqOf(`bellcast.job.shard.${id}.d`))
    await changeState(service.url, id, "paused")
    browsers.respond()
    await changeState(service.url, id, "running")
    const done = await finishedAt(service.url, broadcastPath(id))
    assert.deepInclude(done, { accepted: size, delivered: size })
    assert.deepInclude(push.counts, { distinct: size, duplicates: 0 })
  })
})
