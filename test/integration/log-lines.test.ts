// Which requests are lines of the log.
import { assert, it } from "vitest"
import { call, until } from "#test/client.ts"
import { startNats } from "#test/nats.ts"
import { startService } from "#test/service.ts"

/** The paths of the requests in the log, once the last one is there. */
const logged = async (natsUrl: string, env: Readonly<Record<string, string>>) => {
  await using service = await startService({ natsUrl, env })
  // After a start on stored data, heartbeats may fail for a moment.
  await until(
    () => call(service.metricsUrl(), "GET", "/__heartbeat__"),
    ({ status }) => status === 200
  )
  for (const path of ["/__heartbeat__", "/__lbheartbeat__", "/__metrics__", "/"])
    assert.strictEqual((await call(service.url, "GET", path)).status, 200, path)
  await service.stop()
  return service
    .output()
    .split("\n")
    .flatMap((line) => (line.includes('"request.summary"') ? [JSON.parse(line)] : []))
    .map(({ level, path }) => `${level} ${path}`)
}

it("logs requests but no probes, none where nobody wants them, and all at debug", async () => {
  await using nats = await startNats()
  const { url } = nats
  assert.deepEqual(await logged(url, {}), ["30 /v1/"])
  assert.deepEqual(await logged(url, { BELLCAST_LOG_REQUESTS: "false" }), [])
  assert.deepEqual(
    await logged(url, { BELLCAST_LOG_REQUESTS: "false", BELLCAST_LOG_LEVEL: "debug" }),
    ["20 /v1/__heartbeat__", "20 /v1/__lbheartbeat__", "20 /v1/__metrics__", "20 /v1/"]
  )
})
