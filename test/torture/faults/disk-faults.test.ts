// Each fault of a disk hits the servers that it names and is undone: every acknowledged message is
// there afterwards, and new ones are taken.
import { setTimeout as sleep } from "node:timers/promises"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/transport-node"
import { describe, test } from "vitest"
import { seeded } from "../random.ts"
import { diskFaults } from "./disk-faults.ts"
import type { Nodes } from "./fault.ts"
import { client, emptyFolder, servers, until } from "./proof.ts"

/** Publishes one message after the other until `stop`, and keeps which were acknowledged. */
const publish = (connection: NatsConnection) => {
  const acknowledged: Array<string> = []
  let isOver = false
  const done = (async () => {
    const stream = jetstream(connection)
    for (let i = 0; !isOver; i++) {
      const body = `message ${i} ${"x".repeat(2_000)}`
      await stream.publish("made", body, { timeout: 1_000 }).then(
        () => acknowledged.push(body),
        () => sleep(10)
      )
    }
  })()
  const stop = async () => {
    isOver = true
    await done
  }
  return { acknowledged, stop }
}

/** All messages of the stream, read from its beginning. */
const stored = async (connection: NatsConnection): Promise<ReadonlySet<string>> => {
  const { state } = await (await jetstreamManager(connection)).streams.info("S")
  const bodies = new Set<string>()
  const consumer = await jetstream(connection).consumers.get("S")
  const messages = await consumer.consume()
  for await (const message of messages) {
    bodies.add(message.string())
    if (message.seq >= state.last_seq) break
  }
  return bodies
}

describe.each(diskFaults.map((fault) => [fault.name, fault] as const))("%s", (name, fault) => {
  test.for<Nodes>([1, 3])("with %d servers", { timeout: 120_000 }, async (nodes, context) => {
    const { expect, skip } = context
    const reason = await fault.unavailable?.()
    if (reason !== undefined) skip(reason)
    const nats = await servers({ nodes })
    await nats.useStore(fault.store ?? "plain")
    await until("healthy", () => nats.isHealthy())
    const connection = await client(nats.directUrl)
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: "S", subjects: ["made"], num_replicas: nodes })
    const { acknowledged, stop } = publish(connection)
    await until("200 messages", async () => acknowledged.length > 200)
    const planned = fault.plan(seeded(`${name} ${nodes}`), { nodes, members: [] }, 60)
    const ongoing = await planned.begin({
      nodes,
      nats,
      fleet: [],
      folder: await emptyFolder(),
      say: () => {}
    })
    const before = acknowledged.length
    await sleep(1_500)
    await ongoing.end()
    await until("healthy", () => nats.isHealthy(), 60_000)
    await until("more messages", async () => acknowledged.length > before + 100)
    await stop()
    const found = await stored(await client(nats.directUrl))
    expect(acknowledged.filter((body) => !found.has(body))).toEqual([])
  })
})
