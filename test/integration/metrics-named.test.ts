// Every metric that src/telemetry/README.md names is one that a running service shows. The alerts,
// the runbook and the dashboard name no others (test/unit/alerts.test.ts).
import { assert, it } from "vitest"
import { call, finished, join, publish, until } from "../support/client.ts"
import { spansOf, textOf } from "../support/documents.ts"
import { startNats } from "../support/nats.ts"
import { startPushService } from "../support/push-service.ts"
import { createToken } from "../support/run-cli.ts"
import { startService } from "../support/service.ts"

const names = textOf("src/telemetry/README.md")
  .split("\n")
  .filter((line) => /^\| `(bellcast|process|nodejs)_/.test(line))
  .map((line) => spansOf(line.split("|")[1]!)[0]!)

it.runIf(process.platform === "linux")(
  "shows every metric that a document names",
  {
    timeout: 120_000
  },
  async () => {
    await using nats = await startNats()
    await using push = await startPushService()
    const env = { BELLCAST_AUTH_POLICIES: "basicauth,token" }
    await using service = await startService({ natsUrl: nats.url, env })
    await createToken(nats.url, "shop", "--channel", "news")
    await join([service.url], "news", [push.subscribe().subscription])
    const broadcast = await publish(service.url, "news", { n: 1 })
    await finished(service.url, "news", broadcast)
    await call(service.url, "GET", `/broadcasts/${broadcast}/events`, "publisher")
    const missing = async () => {
      const text = String((await call(service.metricsUrl(), "GET", "/metrics")).body)
      return names.filter((name) => !new RegExp(`^${name}(_count)?[{ ]`, "m").test(text))
    }
    assert.isAbove(names.length, 40)
    await until(missing, (list) => list.length === 0)
  }
)
