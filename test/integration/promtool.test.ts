// The metrics of a process and the alerts by the rules of Prometheus, where its `promtool` is on
// PATH: `apt-get install prometheus`.
import { spawnSync } from "node:child_process"
import { assert, it } from "vitest"
import { call, finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const promtool = (args: ReadonlyArray<string>, input = "") =>
  spawnSync("promtool", args, { input, encoding: "utf8" })

const skipped = "promtool is not installed: apt-get install prometheus"
const isThere = promtool(["--version"]).error === undefined

it("promtool finds nothing wrong in the alerts", ({ skip }) => {
  if (!isThere) return skip(skipped)
  const { status, stderr, stdout } = promtool(["check", "rules", "src/telemetry/alerts.yml"])
  assert.equal(status, 0, stdout + stderr)
})

it("promtool finds nothing wrong in metrics", { timeout: 60_000 }, async ({ skip }) => {
  if (!isThere) return skip(skipped)
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startService({ natsUrl: nats.url })
  await join([service.url], "news", [push.subscribe().subscription])
  await finished(service.url, "news", await publish(service.url, "news", { n: 1 }))
  const text = String((await call(service.metricsUrl(), "GET", "/metrics")).body)
  const { status, stderr, stdout } = promtool(["check", "metrics"], text)
  assert.deepEqual([stdout + stderr, status], ["", 0])
  // A counter without help and without `_total`.
  assert.notEqual(promtool(["check", "metrics"], "# TYPE a counter\na 1\n").status, 0)
})
