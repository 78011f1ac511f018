// A start on the data folder of a service that is being stopped, or that is not.
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { temporaryFolder } from "../support/folder.ts"
import { startService } from "../support/service.ts"

it("waits for a service that is being stopped, not for one that serves", {
  timeout: 60_000
}, async () => {
  const env = {
    BELLCAST_DATA_DIR: await temporaryFolder(),
    BELLCAST_SHUTDOWN_WAIT_SECONDS: "6"
  }
  const first = await startService({ env })
  const refused = await startService({ env }).then(
    () => "started",
    (error: Error) => error.message
  )
  assert.match(refused, /is in use by another embedded nats-server/)
  assert.notInclude(refused, "waiting up to")
  assert.notInclude(refused, "is being stopped")
  const stopped = first.stop()
  await until(
    async () => first.output(),
    (output) => output.includes('"msg":"stopping"')
  )
  await using second = await startService({ env })
  assert.include(second.output(), "waiting up to 10 s in case its service is being stopped")
  assert.equal(await stopped, 0)
})

it("gives up after 10 s where no gateway runs, and says when to start again", {
  timeout: 60_000
}, async () => {
  const env = { BELLCAST_DATA_DIR: await temporaryFolder() }
  await using _first = await startService({ env, roles: "projection" })
  const refused = await startService({ env }).then(
    () => "started",
    (error: Error) => error.message
  )
  assert.include(refused, "waiting up to 10 s in case its service is being stopped")
  assert.match(refused, /is in use .* If its service is being stopped, start again when it has\./)
})
