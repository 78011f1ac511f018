// What the tally stores in the bucket of broadcasts, and how a broadcast reads at every point of
// its life.
import { nanos } from "@nats-io/transport-node"
import { assert, it } from "vitest"
import { administer, startWithHistory } from "#test/history.ts"
import { startNats } from "#test/nats.ts"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const bucket = "KV_bellcast_broadcasts"
const prefix = "$KV.bellcast_broadcasts."

it("keeps the progress of broadcasts under way, and nothing of finished ones", async () => {
  await using past = await startWithHistory()
  await using admin = await administer(past.url)
  const kept = Object.keys(await admin.entries()).filter((key) => key.startsWith(prefix))
  assert.deepEqual(kept, [`${prefix}${past.open}`])
  for (const finishedOne of [past.done, past.empty, past.lost]) {
    const { state } = await admin.jsm.streams.info("BELLCAST_LOG", {
      subjects_filter: `bellcast.evt.finished.*.${finishedOne}`
    })
    assert.lengthOf(Object.keys(state.subjects ?? {}), 1)
  }
})

it("removes an entry once the broadcast has finished, and works after weeks without any", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats({ syncAlways: false })
  await using admin = await administer(nats.url)
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  // Refused often enough that the broadcast is still under way when its progress is written.
  const browser = push.subscribe({ script: [...Array(5).fill(503), 201] })
  await join([service.url], "news", [browser.subscription])
  const broadcast = await publish(service.url, "news", { n: 1 })
  const keys = async () => Object.keys(await admin.entries())
  const key = `${prefix}${broadcast}`
  await until(keys, (found) => found.includes(key))
  const underWay = () =>
    call(service.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")
  const { body } = await until(underWay, (answer) => answer.body.data.accepted === 1)
  assert.equal(body.data.finished, false)
  const done = await finished(service.url, "news", broadcast, 30_000)
  assert.deepInclude(done, { accepted: 1, delivered: 1, finished: true })
  await until(keys, (found) => !found.includes(key))
  assert.deepEqual(await finished(service.url, "news", broadcast, 1_000), done)
  // Nothing happens for longer than the entries of the bucket live.
  const { config } = await admin.jsm.streams.info(bucket)
  const age = { max_age: nanos(1_000), duplicate_window: nanos(1_000) }
  await admin.jsm.streams.update(bucket, { ...config, ...age })
  await admin.nc.request(`${prefix}old`, "{}")
  await until(keys, (found) => !found.includes(`${prefix}old`))
  await admin.jsm.streams.update(bucket, config)
  assert.deepEqual(await finished(service.url, "news", broadcast, 1_000), done)
  const next = await publish(service.url, "news", { n: 2 })
  assert.deepInclude(await finished(service.url, "news", next), { accepted: 1, delivered: 1 })
})
