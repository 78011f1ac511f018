// A broadcast waits while no process runs a stage that it needs.
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { connectAdmin } from "../support/nats-admin.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("keeps an accepted broadcast while there is no projector, and sends it when there is one", {
  timeout: 180_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const agent = push.subscribe()
  await using gateway = await startService({
    natsUrl: nats.url,
    roles: "gateway"
  })
  const projection = await startService({ natsUrl: nats.url, roles: "projection" })
  await join([gateway.url], "news", [agent.subscription])
  await projection.kill()
  await using _workers = await startService({
    natsUrl: nats.url,
    roles: "fanout,delivery,tally"
  })
  const broadcast = await publish(gateway.url, "news", { n: 1 })
  const writes = Array.from({ length: 10 }, (_, i) =>
    call(gateway.url, "PUT", "/channels/news/registration", `late${i}`)
  )
  for (const { status } of await Promise.all(writes)) assert.equal(status, 503)
  assert.lengthOf(
    gateway.output().match(/"msg":"storage unavailable"/gu) ?? [],
    1,
    "each refused request writes a line of its own"
  )
  await using admin = await connectAdmin(nats.url)
  const { jsm } = admin
  await until(
    () => jsm.consumers.info("BELLCAST_LOG", "planner"),
    ({ num_redelivered }) => num_redelivered > 0
  )
  for (const [stream, name] of [
    ["BELLCAST_LOG", "planner"],
    ["BELLCAST_WORK", "deliver"],
    ["BELLCAST_WORK", "retry"]
  ] as const) {
    assert.equal(
      (await jsm.consumers.info(stream, name)).config.max_deliver,
      -1,
      `${name} forgets messages`
    )
  }
  assert.lengthOf(agent.received, 0)
  await using _projection = await startService({ natsUrl: nats.url, roles: "projection" })
  assert.deepInclude(await finished(gateway.url, "news", broadcast, 30_000), {
    accepted: 1,
    delivered: 1
  })
  assert.deepEqual(
    agent.received.map(({ text }) => text),
    ['{"n":1}']
  )
})

it("does not send what has expired meanwhile", { timeout: 180_000 }, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const agent = push.subscribe()
  await using gateway = await startService({
    natsUrl: nats.url,
    roles: "gateway,projection,fanout,tally"
  })
  await join([gateway.url], "news", [agent.subscription])
  const broadcast = await publish(gateway.url, "news", { n: 1 }, { ttl: "1" })
  const progress = () =>
    call(gateway.url, "GET", `/channels/news/broadcasts/${broadcast}`, "publisher")
  // Ten seconds is the least a push is given, see the planner.
  await until(
    progress,
    ({ body }) => body.data.shards === 1 && body.data.expires_at <= Date.now(),
    30_000
  )
  await using _delivery = await startService({ natsUrl: nats.url, roles: "delivery" })
  assert.deepInclude(await finished(gateway.url, "news", broadcast, 30_000), {
    accepted: 1,
    delivered: 0,
    expired: 1
  })
  assert.lengthOf(agent.attempts, 0)
})
