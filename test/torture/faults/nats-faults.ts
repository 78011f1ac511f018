// What happens to nats-servers as processes: killed, frozen, restarted; any of them, the leader, or
// all at once.
import type { Random } from "../random.ts"
import type { Context, Fault, NatsServer, Nodes, Ongoing } from "./fault.ts"
import { metaLeader, streamLeader } from "./nats-monitor.ts"

/** Which servers. A leader is known only when the fault begins. */
type Target =
  | { readonly kind: "server"; readonly index: number }
  | { readonly kind: "leader"; readonly of: "meta" | "BELLCAST_LOG" | "BELLCAST_WORK" }
  | { readonly kind: "all" }

const textOf = (target: Target): string => {
  if (target.kind === "server") return `server ${target.index + 1}`
  if (target.kind === "all") return "all servers"
  return `leader of ${target.of}`
}

const pickTarget = (random: Random, nodes: Nodes): Target => {
  if (nodes === 1) return { kind: "all" }
  const kind = random.pick(["server", "leader", "leader", "all"] as const)
  if (kind === "server") return { kind, index: random.between(0, nodes - 1) }
  if (kind === "all") return { kind }
  return { kind, of: random.pick(["meta", "BELLCAST_LOG", "BELLCAST_WORK"] as const) }
}

/** Without a leader, the first server. */
const resolve = async (target: Target, context: Context): Promise<ReadonlyArray<NatsServer>> => {
  const { servers } = context.nats
  if (target.kind === "all") return servers
  if (target.kind === "server") return [servers[target.index]!]
  const leader =
    target.of === "meta" ? await metaLeader(servers) : await streamLeader(servers, target.of)
  const chosen = leader ?? servers[0]!
  context.say(`leader of ${target.of} is ${leader?.name ?? "nobody"}: takes ${chosen.name}`)
  return [chosen]
}

interface Kind {
  readonly name: string
  /** Bounds of how long it lasts. */
  readonly seconds: readonly [number, number]
  readonly short?: boolean
  readonly begin: (servers: ReadonlyArray<NatsServer>) => Promise<void>
  readonly end: (servers: ReadonlyArray<NatsServer>) => Promise<void>
}

const started = async (servers: ReadonlyArray<NatsServer>): Promise<void> => {
  await Promise.allSettled(servers.map((server) => server.start()))
}

const kinds: ReadonlyArray<Kind> = [
  {
    name: "nats-server killed",
    seconds: [0, 15],
    short: true,
    begin: async (servers) => void (await Promise.all(servers.map((server) => server.kill()))),
    end: started
  },
  {
    name: "nats-server frozen",
    // The service's ack wait is 15 s, and its leases last 3 s.
    seconds: [4, 30],
    short: true,
    begin: async (servers) => {
      for (const server of servers) server.freeze()
    },
    end: async (servers) => {
      for (const server of servers) server.thaw()
    }
  },
  {
    name: "nats-server restarted",
    seconds: [0, 5],
    begin: async (servers) => void (await Promise.all(servers.map((server) => server.stop()))),
    end: started
  }
]

const faultOf = (kind: Kind): Fault => ({
  name: kind.name,
  nodes: [1, 3],
  ...(kind.short === undefined ? {} : { short: kind.short }),
  plan: (random, { nodes }, secondsMax) => {
    const target = pickTarget(random, nodes)
    const seconds = Math.min(secondsMax, random.between(...kind.seconds))
    return {
      text: `${kind.name}: ${textOf(target)}`,
      holds: ["nats"],
      seconds,
      begin: async (context): Promise<Ongoing> => {
        const servers = await resolve(target, context)
        await kind.begin(servers)
        return { mayRepeat: "all", end: () => kind.end(servers) }
      }
    }
  }
})

/** One server after the other, each when the others are healthy again: an upgrade of NATS. */
const rollingRestart: Fault = {
  name: "nats-servers restarted one by one",
  nodes: [3],
  plan: (random, { nodes }) => {
    const order = random.shuffle(Array.from({ length: nodes }, (_, index) => index))
    return {
      text: `servers restarted in the order ${order.map((index) => index + 1).join(", ")}`,
      holds: ["nats"],
      seconds: 0,
      begin: async ({ nats }) => {
        for (const index of order) {
          const server = nats.servers[index]!
          await server.stop()
          await server.start()
          const deadline = performance.now() + 20_000
          while (performance.now() < deadline && !(await nats.isHealthy()))
            await new Promise((done) => setTimeout(done, 250))
        }
        return { mayRepeat: "all", end: () => started(nats.servers) }
      }
    }
  }
}

export const natsFaults: ReadonlyArray<Fault> = [...kinds.map(faultOf), rollingRestart]
