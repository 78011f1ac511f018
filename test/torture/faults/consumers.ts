// Durable consumers that somebody deletes or pauses, and the bucket `cache` deleted: the service
// must make them again by itself.
import type { RigClient } from "../nats/client.ts"
import { patiently } from "../nats/patiently.ts"
import type { Fault } from "./fault.ts"

const consumers = [
  ["BELLCAST_LOG", "planner"],
  ["BELLCAST_WORK", "deliver"],
  ["BELLCAST_WORK", "limited"],
  ["BELLCAST_WORK", "retry"]
] as const

const hourMillis = 60 * 60_000

const deleted = (client: () => RigClient): Fault => ({
  name: "durable consumer deleted",
  nodes: [1, 3],
  plan: (random) => {
    const [stream, name] = random.pick(consumers)
    return {
      text: `consumer ${name} of ${stream} deleted`,
      holds: ["nats", name],
      seconds: 0,
      begin: async () => {
        await patiently(() => client().jsm.consumers.delete(stream, name))
        // Its messages are delivered again, to any process.
        return { mayRepeat: "all", end: async () => {} }
      }
    }
  }
})

const paused = (client: () => RigClient): Fault => ({
  name: "durable consumer paused",
  nodes: [1, 3],
  plan: (random) => {
    const [stream, name] = random.pick(consumers)
    return {
      text: `consumer ${name} of ${stream} paused for an hour`,
      holds: ["nats", name],
      seconds: 0,
      begin: async () => {
        const until = new Date(Date.now() + hourMillis)
        await patiently(() => client().jsm.consumers.pause(stream, name, until))
        return { mayRepeat: "all", end: async () => {} }
      }
    }
  }
})

const cacheDeleted = (client: () => RigClient): Fault => ({
  name: "bucket cache deleted",
  nodes: [1, 3],
  plan: () => ({
    text: "bucket cache, which holds the leases, deleted",
    holds: ["nats", "cache"],
    seconds: 0,
    begin: async () => {
      await patiently(() => client().jsm.streams.delete("KV_bellcast_cache"))
      return { mayRepeat: [], end: async () => {} }
    }
  })
})

export const consumerFaults = (client: () => RigClient): ReadonlyArray<Fault> => [
  deleted(client),
  paused(client),
  cacheDeleted(client)
]
