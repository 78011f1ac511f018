// The metrics of a process by the rules of Prometheus, where its `promtool` is on PATH.
import { spawnSync } from "node:child_process"
import { assert, it } from "vitest"
import { call, finished, join, publish } from "../support/client.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { startService } from "../support/service.ts"

const promtool = (args: ReadonlyArray<string>, input = "") =>
  spawnSync("promtool", args, { input, encoding: "utf8" })

const isThere = promtool(["--version"]).error === undefined

it.skipIf(!isThere)("promtool finds nothing wrong in metrics", { timeout: 60_000 }, async () => {
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
