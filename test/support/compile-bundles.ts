// Runs each bundle once, so that V8 compiles what most tests run. run-bundle.cjs keeps the result
// for the processes of the tests.
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { finished, joinAll, publish } from "./client.ts"
import { startNats } from "./nats.ts"
import { startPushService } from "./push-service.ts"
import { startProcess } from "./service-process.ts"

const env = { BELLCAST_TEST_CODE: "write" }

/** Registers a few subscriptions and sends a broadcast to them. */
const compileService = async (main: string): Promise<void> => {
  await using nats = await startNats()
  await using push = await startPushService()
  await using service = await startProcess(main, { natsUrl: nats.url, env })
  const agents = Array.from({ length: 20 }, () => push.subscribe())
  await joinAll(service.url, "compiled", agents)
  const broadcast = await publish(service.url, "compiled", {})
  await finished(service.url, "compiled", broadcast)
  const code = await service.stop()
  if (code !== 0) throw new Error(`the bundled service ended with ${code}: ${service.output()}`)
}

export const compileBundles = async (service: string, cli: string): Promise<void> => {
  const options = { env: { ...process.env, ...env } }
  await Promise.all([
    compileService(service),
    promisify(execFile)(process.execPath, [cli, "--help"], options)
  ])
}
