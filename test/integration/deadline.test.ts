// A push is not sent after its deadline, also if the deadline passes while the push waits in the
// send queue.
import { assert, it } from "vitest"
import webpush from "web-push"
import { call, finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

it("is sent to nobody after its deadline, however long the line was", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const env = {
    BELLCAST_PUSHES_UNDER_WAY_MAX: "1",
    BELLCAST_PUSH_TIMEOUT_MILLIS: "6000",
    BELLCAST_RETRY_BASE_MILLIS: "60000"
  }
  await using service = await startService({ natsUrl: nats.url, env })
  const agents = Array.from({ length: 4 }, () => push.subscribe({ script: ["hang"] }))
  await join(
    [service.url],
    "news",
    agents.map(({ subscription }) => subscription)
  )
  // Ten seconds, the shortest life: the third would have its turn after twelve.
  const broadcast = await publish(service.url, "news", { n: 1 }, { TTL: "0" })
  assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), {
    accepted: 4,
    delivered: 0,
    expired: 4
  })
  assert.equal(push.requests, 2)
})

it("is not tried with another key after its deadline, and responses to some keys remove nothing", {
  timeout: 60_000
}, async () => {
  await using nats = await startNats()
  await using push = await startPushService()
  const former = Array.from({ length: 2 }, () => webpush.generateVAPIDKeys()).map(
    ({ privateKey, publicKey }) => `${publicKey}:${privateKey}`
  )
  const env = {
    BELLCAST_VAPID_FORMER_KEYS: former.join(","),
    BELLCAST_PUSH_TIMEOUT_MILLIS: "15000"
  }
  await using service = await startService({ natsUrl: nats.url, env })
  const agent = push.subscribe({ script: ['slow 11000 403 {"reason":"VapidPkHashMismatch"}'] })
  await join([service.url], "news", [agent.subscription])
  const broadcast = await publish(service.url, "news", { n: 1 }, { TTL: "0" })
  assert.deepInclude(await finished(service.url, "news", broadcast, 40_000), {
    accepted: 1,
    expired: 1,
    gone: 0
  })
  assert.equal(push.requests, 1)
  assert.lengthOf((await call(service.url, "GET", "/subscriptions", "user0")).body.data, 1)
})
