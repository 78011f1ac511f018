// A start beside a NATS that does not run yet, or a cluster that has no leaders yet: waits for
// them, says so, and gives up in time.
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { makeNatsCluster } from "../support/nats-cluster.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { claimPort } from "../support/ports.ts"
import { startService } from "../support/service.ts"

it("waits for the leaders of a cold cluster, and ends with what to do when none comes", {
  timeout: 90_000
}, async () => {
  const cluster = await makeNatsCluster()
  await using _first = await cluster.start(0)
  const options = { natsUrl: cluster.urls[0]!, roles: "gateway,projection" }
  const env = (seconds: number) => ({
    BELLCAST_REPLICAS: "3",
    BELLCAST_NATS_WAIT_SECONDS: String(seconds)
  })
  const refused = await startService({ ...options, env: env(1) }).catch(
    ({ message }: Error) => message
  )
  assert.match(String(refused), /cannot start\. NATS was not ready within 1 s \(JetStream: .+\)/)
  assert.include(String(refused), "a majority of the servers")

  let printed = ""
  const starting = startService({
    ...options,
    env: env(60),
    readyTimeoutMillis: 60_000,
    printed: (text) => {
      printed += text
    }
  })
  await until(
    async () => printed,
    (text) => text.includes("NATS is not ready yet: the start waits")
  )
  await using _second = await cluster.start(1)
  await using _third = await cluster.start(2)
  await using service = await starting
  assert.match(service.output(), /"for":"JetStream: .+"/)
})

it("waits for a NATS that starts later, as at the boot of a machine", {
  timeout: 90_000
}, async () => {
  const port = await claimPort()
  let printed = ""
  const starting = startService({
    natsUrl: `nats://user:hush@127.0.0.1:${port}`,
    readyTimeoutMillis: 60_000,
    printed: (text) => {
      printed += text
    }
  })
  await until(
    async () => printed,
    (text) => text.includes("NATS cannot be reached yet: the start waits")
  )
  await using _nats = await startConfiguredNats(port, "jetstream { max_file_store: 20GB }")
  await using service = await starting
  assert.match(service.output(), new RegExp(`"nats":"127.0.0.1:${port}","reason":".*refused`))
  assert.notInclude(service.output(), "hush")
})
