// One server and a cluster of three: they heal after what is done to them, their leaders are known,
// and a cut between two servers leaves no way around it.
import { setTimeout as sleep } from "node:timers/promises"
import { type JetStreamClient, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { test } from "vitest"
import { metaLeader, streamLeader } from "./nats-monitor.ts"
import { client, servers, until } from "./proof.ts"

const publish = async (stream: JetStreamClient, count: number) => {
  for (let i = 0; i < count; i++) await stream.publish("made", `message ${i}`, { retries: 20 })
}

test("a single server keeps its messages over kill, freeze and stop", async ({ expect }) => {
  const nats = await servers({ nodes: 1 })
  const connection = await client(await nats.urlFor("a member"))
  await (await jetstreamManager(connection)).streams.add({ name: "S", subjects: ["made"] })
  const stream = jetstream(connection)
  await publish(stream, 10)
  const [server] = nats.servers
  await server!.kill()
  expect(await nats.isHealthy()).toBe(false)
  await server!.start()
  await publish(stream, 1)
  server!.freeze()
  expect(await nats.isHealthy()).toBe(false)
  server!.thaw()
  await publish(stream, 1)
  await server!.stop()
  await server!.start()
  await until("healthy", nats.isHealthy)
  // A request that is made while its connection is down is not sent later.
  const manager = await jetstreamManager(await client(nats.directUrl))
  const info = await manager.streams.info("S")
  expect(info.state.messages).toBe(12)
})

test("a cluster elects another leader, and cut servers have no way around", async ({ expect }) => {
  const nats = await servers({ nodes: 3 })
  await until("healthy", nats.isHealthy)
  expect(await metaLeader(nats.servers)).toBeDefined()
  const connection = await client(nats.directUrl)
  const manager = await jetstreamManager(connection)
  await manager.streams.add({ name: "S", subjects: ["made"], num_replicas: 3 })
  const stream = jetstream(connection)
  await publish(stream, 10)
  const first = (await streamLeader(nats.servers, "S"))!
  const others = nats.servers.filter((server) => server !== first)
  for (const other of others)
    for (const link of nats.linksBetween(first.name, other.name)) link.cut()
  await until(
    "another leader",
    async () => ![undefined, first].includes(await streamLeader(others, "S"))
  )
  // The server that is alone dials the others now and then: none of that may reach them.
  await sleep(3_000)
  const routes = await fetch(`${first.monitorUrl}/routez`).then((response) => response.json())
  expect((routes as { readonly num_routes: number }).num_routes).toBe(0)
  expect(await nats.isHealthy()).toBe(false)
  for (const other of others)
    for (const link of nats.linksBetween(first.name, other.name)) link.heal()
  await until("healthy", nats.isHealthy, 60_000)
  await publish(stream, 10)
  expect((await manager.streams.info("S")).state.messages).toBe(20)
}, 120_000)
