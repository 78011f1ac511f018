// Crashes of the service or a worker by SIGKILL: what was acknowledged survives.
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { holdResponses } from "../support/held.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** Settings.unrecordedPushesMax: at most so many pushes are sent twice after a crash. */
const duplicatesMax = 768

it("delivers to all 1,800 after a SIGKILL in the middle of the broadcast, repeating at most 768", {
  timeout: 180_000
}, async () => {
  await using nats = await startNats()
  await using push = await spawnPushService()
  const subscriptions = await push.subscribe(1_800)
  let service = await startService({ natsUrl: nats.url })
  try {
    await fillChannels(nats.url, [{ name: "news", subscriptions }])
    const broadcast = await publish(service.url, "news", { n: 1 })
    await push.waitForDistinct(850, 30_000)
    await service.kill()
    const { counts } = await push.report()
    assert.isBelow(counts.distinct, 1_800, "the kill came too late to prove anything")
    service = await startService({ natsUrl: nats.url })
    const done = await finished(service.url, "news", broadcast, 120_000)
    const report = await push.report()
    assert.deepInclude(done, { accepted: 1_800, delivered: 1_800 })
    assert.equal(report.counts.distinct, 1_800)
    assert.isAtMost(report.counts.duplicates, duplicatesMax)
    assert.deepEqual(report.faults, [])
    process.stdout.write(
      `killed at ${counts.distinct} of 1800, ${report.counts.duplicates} sent twice\n`
    )
  } finally {
    await service[Symbol.asyncDispose]()
  }
})

it("records every push of a worker that was killed while nothing could be recorded", {
  timeout: 90_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const dead = Array.from({ length: 8 }, () => push.subscribe({ script: ["slow 1000 410"] }))
  const { respond } = holdResponses(dead)
  const slow = Array.from({ length: 2 }, () => push.subscribe({ script: ["slow 4000", "201"] }))
  await using rest = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  await using worker = await startService({ natsUrl: nats.url, roles: "delivery" })
  await join(
    [rest.url],
    "news",
    [...dead, ...slow].map(({ subscription }) => subscription)
  )
  await using admin = await connectAdmin(nats.url)
  const { jsm } = admin
  const work = () => jsm.streams.info("BELLCAST_WORK", { subjects_filter: "bellcast.outcome.>" })
  let { config, state } = await work()
  const broadcast = await publish(rest.url, "news", { n: 1 })
  // The shard is claimed; what became of its first pushes is not known yet, and cannot be written.
  while (state.subjects === undefined) state = (await work()).state
  await jsm.streams.update("BELLCAST_WORK", { ...config, max_bytes: state.bytes })
  await until(
    async () => dead.filter(({ attempts }) => attempts.length > 0).length,
    (count) => count === dead.length
  )
  respond()
  await until(
    async () => worker.output(),
    (log) => log.includes("outcomes cannot be written: pushes wait")
  )
  await worker.kill()
  assert.strictEqual(
    (await work()).state.last_seq,
    state.last_seq,
    "it was recorded too soon to prove anything"
  )
  await jsm.streams.update("BELLCAST_WORK", config)
  await using _another = await startService({ natsUrl: nats.url, roles: "delivery" })
  const counts = {
    accepted: dead.length + slow.length,
    gone: dead.length,
    delivered: slow.length
  }
  assert.deepInclude(await finished(rest.url, "news", broadcast, 60_000), counts)
  const left = async () => {
    const lists = await Promise.all(
      dead.map((_, i) => call(rest.url, "GET", "/subscriptions", `user${i}`))
    )
    return lists.reduce((sum, { body }) => sum + body.data.length, 0)
  }
  await until(left, (count) => count === 0)
})
