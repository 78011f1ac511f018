// A start beside a cluster that has no leaders yet: waits for them, says so, and gives up in time.
import { assert, it } from "vitest"
import { until } from "../support/client.ts"
import { startConfiguredNats } from "../support/nats-configured.ts"
import { freePort, startService } from "../support/service.ts"

const members = ["a", "b", "c"] as const

const startMember = async (
  name: string,
  port: number,
  routePort: number,
  routes: ReadonlyArray<number>
) =>
  startConfiguredNats(
    port,
    [
      `server_name: ${name}`,
      "jetstream { max_file_store: 20GB, sync_interval: 2m }",
      `cluster { name: cold, listen: "127.0.0.1:${routePort}"`,
      `  routes: [${routes.map((route) => `"nats-route://127.0.0.1:${route}"`).join(", ")}] }`
    ].join("\n")
  )

it("waits for the leaders of a cold cluster, and ends with what to do when none comes", {
  timeout: 90_000
}, async () => {
  const ports = await Promise.all(members.map(freePort))
  const routes = await Promise.all(members.map(freePort))
  const member = (n: number) => startMember(members[n]!, ports[n]!, routes[n]!, routes)
  await using _first = await member(0)
  const options = { natsUrl: `nats://127.0.0.1:${ports[0]}`, roles: "gateway,projection" }
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
    (text) => text.includes("NATS has no leader yet: the start waits")
  )
  await using _second = await member(1)
  await using _third = await member(2)
  await using service = await starting
  assert.match(service.output(), /"for":"JetStream: .+"/)
})
