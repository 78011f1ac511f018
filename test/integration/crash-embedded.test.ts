// SIGKILL of a service that takes its embedded nats-server with it.
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startService } from "../support/service.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

it("loses nothing acknowledged when the service and its embedded server are killed", {
  timeout: 120_000
}, async () => {
  const dataDir = await temporaryFolder()
  await using push = await spawnPushService()
  const subscriptions = await push.subscribe(200)
  const env = { BELLCAST_DATA_DIR: dataDir }
  let service = await startService({ env })
  try {
    await join([service.url], "news", subscriptions as never)
    const broadcast = await publish(service.url, "news", { n: 1 })
    await service.kill()
    service = await startService({ env })
    const done = await finished(service.url, "news", broadcast, 90_000)
    assert.deepInclude(done, { accepted: 200, delivered: 200 })
    assert.equal((await push.report()).counts.distinct, 200)
    const channel = await until(
      () => call(service.url, "GET", "/channels/news", "user0"),
      ({ status }) => status === 200
    )
    assert.equal(channel.body.data.registrations, 200)
    assert.lengthOf((await call(service.url, "GET", "/subscriptions", "user199")).body.data, 1)
  } finally {
    await service[Symbol.asyncDispose]()
  }
})
