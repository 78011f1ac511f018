// Cancelled broadcasts: what is sent until then counts as ever, and the rest is never sent.
import { assert, describe, it } from "vitest"
import {
  broadcastPath,
  changeState,
  fewPermits,
  heldMillis,
  patchState,
  permits,
  untilShown
} from "../support/broadcast-states.ts"
import { call, finished, finishedAt, join, publish, until } from "../support/client.ts"
import { fillChannels } from "../support/fill.ts"
import { holdResponses } from "../support/held.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { elapsed } from "../support/quiet.ts"
import { runCli } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"
import { useService } from "../support/use-service.ts"

const cancel = (url: string, id: string) => changeState(url, id, "cancelled")

const addsUp = (data: Record<string, number>) =>
  assert.equal(
    data["accepted"],
    ["delivered", "waiting", "retrying", "expired", "dead", "gone", "cancelled"].reduce(
      (sum, name) => sum + data[name]!,
      0
    )
  )

// One push may take 10 s.
const shared = useService({ env: { BELLCAST_PUSH_TIMEOUT_MILLIS: "10000" } })

const size = 1_100
describe("a broadcast that is cancelled", () => {
  it("is obeyed within a second, its rest counts, and no redrive sends it", {
    timeout: 90_000
  }, async () => {
    await using nats = await startNats()
    await using push = await spawnPushService()
    await using service = await startService({ natsUrl: nats.url, env: fewPermits })
    const browsers = await push.subscribe(size, { script: ["slow 2000"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    const id = await publish(service.url, "news", { n: 1 })
    await push.waitForDistinct(100, 30_000)
    addsUp(await cancel(service.url, id))
    await elapsed(heldMillis)
    const begun = (await push.report()).counts.total
    const done = await finishedAt(service.url, broadcastPath(id))
    addsUp(done)
    assert.deepInclude(done, { state: "cancelled", accepted: size, waiting: 0, retrying: 0 })
    assert.isAbove(done.cancelled, size / 2)
    const { counts, faults } = await push.report()
    assert.equal(counts.total, begun, "pushes began later than a second after the cancellation")
    assert.equal(counts.distinct, done.delivered)
    assert.deepEqual([counts.duplicates, faults], [0, []])

    assert.deepEqual((await patchState(service.url, id, "cancelled")).body.data, done)
    const { body, status } = await patchState(service.url, id, "running")
    assert.deepEqual([status, body.errno, body.details], [409, 124, { state: "cancelled" }])
    const redrive = await runCli(["redrive", id, "--nats", nats.url])
    assert.equal(redrive.stdout, `broadcast ${id} left nobody to send to again\n`)
    const audit = JSON.parse((await runCli(["audit", id, "--json", "--nats", nats.url])).stdout)
    assert.equal(audit.cancelled, done.cancelled)
    const fates = audit.pushes.map(({ fate, reason }: Record<string, string>) => [fate, reason])
    const ends = fates.filter(([fate]: [string]) => fate === "cancelled")
    assert.lengthOf(ends, done.cancelled)
    assert.deepEqual(ends[0], ["cancelled", "cancelled"])
  })

  it("ends retries that wait for hours, and those under way that fail", async () => {
    const { nats, service } = shared
    await using push = await startPushService()
    const later = push.subscribe({ script: ["503 retry-after 7200", "201"] })
    const slow = push.subscribe({ script: ["503"] })
    const taken = push.subscribe()
    const refused = push.subscribe({ script: ["400", "201"] })
    const { respond } = holdResponses([slow, taken])
    const agents = [later, slow, taken, refused]
    await join(
      [service.url],
      "news",
      agents.map(({ subscription }) => subscription)
    )
    const id = await publish(service.url, "news", { n: 1 })
    await untilShown(service.url, id, ({ retrying }) => retrying === 1)
    await push.waitFor(({ requests }) => requests === agents.length)
    const { code, stdout } = await runCli(["broadcast", "cancel", id, "--json", "--nats", nats.url])
    assert.deepEqual([code, JSON.parse(stdout)], [0, { broadcast: Number(id), state: "cancelled" }])
    await elapsed(heldMillis)
    respond()
    const done = await finished(service.url, "news", id)
    const counts = { delivered: 1, dead: 1, cancelled: 2, retrying: 0, waiting: 0 }
    assert.deepInclude(done, { accepted: 4, ...counts })
    assert.equal(done.state, "cancelled")
    assert.lengthOf(taken.received, 1)
    assert.lengthOf(later.received, 0)
    // The attempt that failed after the cancellation has no retry job.
    await using admin = await connectAdmin(nats.url)
    const subjects_filter = `bellcast.job.retry.*.${id}.>`
    const { state } = await admin.jsm.streams.info("BELLCAST_WORK", { subjects_filter })
    assert.lengthOf(Object.keys(state.subjects ?? {}), 1)
    await until(
      async () => service.output(),
      (text) => {
        const fields = `"broadcast":${id},"publisher":"[^"]+","channel":"news","by":"operator"`
        return new RegExp(`${fields},"accepted":\\d.*"broadcast cancelled"`).test(text)
      }
    )
    // A redrive sends what is dead, and nothing that was cancelled.
    assert.equal((await runCli(["redrive", id, "--nats", nats.url])).code, 0)
    await push.waitFor(({ requests }) => requests > agents.length)
    const [again] = await until(
      async () =>
        (await call(service.url, "GET", "/channels/news/broadcasts", "publisher")).body.data,
      ([newest]) => newest.redrives === id && newest.finished
    )
    assert.deepInclude(again, { accepted: 1, delivered: 1 })
    assert.deepEqual(
      [refused, later].map(({ received }) => received.length),
      [1, 0]
    )
  })

  it("is not sent on by the worker that takes over from a killed one", {
    timeout: 120_000
  }, async () => {
    await using nats = await startNats()
    await using push = await spawnPushService({ decrypt: false })
    const roles = "gateway,projection,fanout,tally"
    await using rest = await startService({ natsUrl: nats.url, roles })
    const start = () => startService({ natsUrl: nats.url, roles: "delivery", env: fewPermits })
    await using worker = await start()
    const browsers = await push.subscribe(size, { script: ["slow 200"] })
    await fillChannels(nats.url, [{ name: "news", subscriptions: browsers }])
    const id = await publish(rest.url, "news", { n: 1 })
    await push.waitForDistinct(100, 30_000)
    // Frozen, it cannot hear of the cancellation.
    worker.process.kill("SIGSTOP")
    await cancel(rest.url, id)
    await worker.kill()
    const { counts: before } = await push.report()
    await using _other = await start()
    const done = await finishedAt(rest.url, broadcastPath(id), "publisher", 60_000)
    addsUp(done)
    assert.deepInclude(done, { accepted: size, state: "cancelled", waiting: 0, retrying: 0 })
    const { counts } = await push.report()
    // The pushes that it had under way arrived, and no more.
    assert.isAtMost(counts.distinct, before.distinct + permits)
    assert.equal(counts.duplicates, 0)
    assert.isAtLeast(done.delivered, counts.distinct - permits)
    assert.equal(done.cancelled, size - done.delivered)
  })

  it("goes to nobody when it is not planned yet", async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const roles = "gateway,projection,tally"
    await using service = await startService({ natsUrl: nats.url, roles })
    const agent = push.subscribe()
    await join([service.url], "news", [agent.subscription])
    const id = await publish(service.url, "news", { n: 1 })
    assert.deepInclude(await cancel(service.url, id), { accepted: 0, finished: false })
    await using _workers = await startService({ natsUrl: nats.url, roles: "fanout,delivery" })
    const done = await finishedAt(service.url, broadcastPath(id))
    assert.deepInclude(done, { state: "cancelled", accepted: 0, cancelled: 0, shards: 0 })
    const next = await publish(service.url, "news", { n: 2 })
    assert.deepInclude(await finishedAt(service.url, broadcastPath(next)), {
      state: "finished",
      accepted: 1,
      delivered: 1
    })
    assert.deepEqual(
      agent.received.map(({ text }) => text),
      ['{"n":2}']
    )
    const { body, status } = await patchState(service.url, next, "cancelled")
    assert.deepEqual([status, body.errno, body.details], [409, 124, { state: "finished" }])
    const { code, stderr } = await runCli(["broadcast", "cancel", next, "--nats", nats.url])
    assert.deepEqual(
      [code, stderr],
      [1, `bellcast: broadcast ${next} is finished: there is nothing to cancel\n`]
    )
  })
})

it("counts a retry that is under way when a resumed broadcast is cancelled", {
  timeout: 120_000
}, async () => {
  const { service } = shared
  await using push = await startPushService()
  const late = push.subscribe({ script: ["503 retry-after 33", "slow 8000"] })
  await join([service.url], "late", [late.subscription], 1, "late")
  const id = await publish(service.url, "late", { n: 1 })
  await untilShown(service.url, id, ({ retrying }) => retrying === 1)
  for (const state of ["paused", "running"]) await changeState(service.url, id, state)
  // By then no attempt from before the pause can be under way.
  await push.waitFor(() => late.attempts.length === 2, 60_000)
  await cancel(service.url, id)
  const done = await finishedAt(service.url, broadcastPath(id))
  assert.deepInclude(done, { state: "cancelled", delivered: 1, cancelled: 0 })
})
