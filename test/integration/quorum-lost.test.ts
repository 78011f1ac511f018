// A cluster that loses servers: after one the metrics show fewer copies, after two the log says so,
// and blames no disk.
import { assert, it } from "vitest"
import { call, until } from "../support/client.ts"
import { startNatsCluster } from "../support/nats-cluster.ts"
import { startService } from "../support/service.ts"

it("names the missing majority of a cluster, and blames no disk", {
  timeout: 240_000
}, async () => {
  await using cluster = await startNatsCluster()
  const natsUrl = cluster.urls.join(",")
  const env = { BELLCAST_REPLICAS: "3" }
  await using service = await startService({ natsUrl, env, readyTimeoutMillis: 60_000 })
  const publish = () => call(service.url, "POST", "/channels/news", "user", { data: {} })
  const metrics = async () =>
    String((await call(service.metricsUrl(), "GET", "/metrics")).body)
      .split("\n")
      .filter((line) => /^bellcast_(stream_copies|nats_trouble)/.test(line))
  const copies = (kind: string, n: number) => `bellcast_stream_copies${kind} ${n}`
  const log = '{stream="BELLCAST_LOG"}'
  const all = await until(metrics, (lines) => lines.includes(copies(log, 3)))
  assert.includeMembers(all, [copies(`_wanted${log}`, 3), copies('{stream="BELLCAST_WORK"}', 3)])
  await cluster.kill(1)
  await until(metrics, (lines) => lines.includes(copies(log, 2)), 90_000)
  await until(
    () => Promise.resolve(service.output()),
    (log) => /"servers":"b","copies":2,"wanted":3,.*fewer current copies/.test(log)
  )
  await cluster.kill(2)
  const reports = /"level":50,.*"msg":"(?:NATS|nats-server|JetStream)[^"]*"/
  const report = async () => {
    // Only what the service logs counts, not how long the request takes.
    await publish().catch(() => undefined)
    return reports.exec(service.output())?.[0] ?? "no report"
  }
  assert.include(
    await until(report, (text) => text !== "no report"),
    "NATS stores nothing, as of the servers that hold a stream no majority runs"
  )
  const blamed = service.output().replaceAll(/.*fewer current copies.*/g, "")
  assert.isFalse(/disk|disabled/.test(blamed), "blames a disk")
  await until(metrics, (lines) => lines.includes('bellcast_nats_trouble{kind="leaderless"} 1'))
})
