// Jobs that somebody purged from WORK: a cancellation ends what waits all the same.
import { assert, it } from "vitest"
import { broadcastPath, changeState } from "../support/broadcast-states.ts"
import { call, finishedAt, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("a cancelled broadcast ends although the jobs of its retries were purged", {
  timeout: 120_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  // An attempt may take longer than the first deliveries of a cancellation.
  const env = { BELLCAST_PUSH_TIMEOUT_MILLIS: "15000" }
  await using service = await startService({ natsUrl: nats.url, env })
  // One has outcomes of its own, the others those of their shard.
  const scripts = [["503", "503 retry-after 600"], ["503 retry-after 600"], ["503 retry-after 600"]]
  const agents = scripts.map((script) => push.subscribe({ script }))
  await join(
    [service.url],
    "news",
    [...agents, push.subscribe()].map(({ subscription }) => subscription)
  )
  const id = await publish(service.url, "news", { n: 1 })
  await until(
    () => call(service.url, "GET", broadcastPath(id), "publisher"),
    ({ body }) => body.data.retrying === 3 && agents[0]!.attempts.length === 2
  )
  await using admin = await connectAdmin(nats.url)
  const filter = `bellcast.job.retry.*.${id}.>`
  const { purged } = await admin.jsm.streams.purge("BELLCAST_WORK", { filter })
  assert.equal(purged, 3)
  await changeState(service.url, id, "cancelled")
  const done = await finishedAt(service.url, broadcastPath(id), "publisher", 90_000)
  assert.deepInclude(done, { state: "cancelled", accepted: 4, delivered: 1, cancelled: 3 })
  assert.deepInclude(done, { retrying: 0, waiting: 0 })
})
