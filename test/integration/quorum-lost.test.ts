// A cluster that has lost two of its three servers: the log says so, and blames no disk.
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNatsCluster } from "../support/nats-cluster.ts"
import { startService } from "../support/service.ts"

it("names the missing majority of a cluster, and blames no disk", {
  timeout: 120_000
}, async () => {
  await using cluster = await startNatsCluster()
  const natsUrl = cluster.urls.join(",")
  const env = { BELLCAST_REPLICAS: "3" }
  await using service = await startService({ natsUrl, env, readyTimeoutMillis: 60_000 })
  const publish = () => call(service.url, "POST", "/channels/news", "user", { data: {} })
  await cluster.kill(1)
  await cluster.kill(2)
  const reports = /"level":50,.*"msg":"(?:NATS|nats-server|JetStream)[^"]*"/
  const report = async () => {
    // Only what the service logs counts, not how long the request takes.
    await publish().catch(() => undefined)
    return reports.exec(service.output())?.[0] ?? "no report"
  }
  assert.include(
    await until(report, (text) => text !== "no report"),
    "NATS stores nothing, as no majority of a cluster's servers runs"
  )
  assert.isFalse(/disk|disabled/.test(service.output()), "blames a disk")
})
