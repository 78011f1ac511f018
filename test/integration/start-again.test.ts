// A start on the data folder of a service that is being stopped, or that is not.
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startService } from "../support/service.ts"

it("waits for a service that is being stopped, and for no other", { timeout: 60_000 }, async () => {
  const env = {
    BELLCAST_DATA_DIR: await temporaryFolder(),
    BELLCAST_SHUTDOWN_WAIT_SECONDS: "3"
  }
  const first = await startService({ env })
  const refused = await startService({ env }).then(
    () => "started",
    (error: Error) => error.message
  )
  assert.match(refused, /is in use by another embedded nats-server/)
  assert.notInclude(refused, "waiting up to")
  const stopped = first.stop()
  await until(
    async () => first.output(),
    (output) => output.includes('"msg":"stopping"')
  )
  await using second = await startService({ env })
  assert.include(second.output(), "waiting up to 10 s for its service to stop")
  assert.equal(await stopped, 0)
})
