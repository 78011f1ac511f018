// What happens to the disks of nats-servers: power is lost, the disk is full, the server continues
// from a copy of its files.
import { cp } from "node:fs/promises"
import type { Random } from "../random.ts"
import type { Context, Fault, NatsServer, Nodes, Ongoing } from "./fault.ts"
import { type ForgetfulStore, forgetfulUnavailable } from "./forgetful-fs.ts"
import { type SmallStore, smallDiskUnavailable } from "./small-disk.ts"
import { makeStore } from "./store.ts"

/** One of several servers, or all of them. */
const pickServers = (random: Random, nodes: Nodes) => {
  const all = Array.from({ length: nodes }, (_, index) => index)
  const indexes = nodes === 1 || random.chance(0.5) ? all : [random.pick(all)]
  const text = indexes.length === nodes ? "of all servers" : `of server ${(indexes[0] ?? 0) + 1}`
  return {
    text,
    of: ({ nats }: Context): ReadonlyArray<NatsServer> =>
      indexes.map((index) => nats.servers[index]!)
  }
}

const start = async (servers: ReadonlyArray<NatsServer>): Promise<void> => {
  await Promise.allSettled(servers.map((server) => server.start()))
}

const kill = async (servers: ReadonlyArray<NatsServer>): Promise<void> => {
  await Promise.all(servers.map((server) => server.kill()))
}

const powerLoss: Fault = {
  name: "power loss",
  nodes: [1, 3],
  store: "forgetful",
  unavailable: forgetfulUnavailable,
  plan: (random, { nodes }, secondsMax) => {
    const servers = pickServers(random, nodes)
    const seed = random.chance(0.5) ? `torn ${random.next()}` : undefined
    const what = seed === undefined ? "nothing unsynced is kept" : "part of the unsynced is kept"
    return {
      text: `power loss ${servers.text}, ${what}`,
      holds: ["nats"],
      seconds: Math.min(secondsMax, random.between(0, 10)),
      begin: async (context): Promise<Ongoing> => {
        const hit = servers.of(context)
        await kill(hit)
        for (const { name } of hit)
          await (context.nats.storeOf(name) as ForgetfulStore).losePower(
            seed === undefined ? undefined : `${seed} ${name}`
          )
        return { mayRepeat: "all", end: () => start(hit) }
      }
    }
  }
}

/**
 * A nats-server whose disk was full answers nothing that writes until it is restarted, even with
 * room again. So the operator frees space and restarts, as the documents say.
 */
const diskFull: Fault = {
  name: "disk full",
  nodes: [1, 3],
  store: "small",
  unavailable: smallDiskUnavailable,
  plan: (random, { nodes }, secondsMax) => {
    const servers = pickServers(random, nodes)
    const leaveBytes = random.pick([0, 4_096, 256 * 1024])
    return {
      text: `disk ${servers.text} full, ${leaveBytes} bytes left at first`,
      holds: ["nats"],
      seconds: Math.min(secondsMax, random.between(5, 30)),
      begin: async (context): Promise<Ongoing> => {
        const hit = servers.of(context)
        const stores = hit.map(({ name }) => context.nats.storeOf(name) as SmallStore)
        for (const store of stores) await store.fill(leaveBytes)
        return {
          mayRepeat: "all",
          end: async () => {
            for (const store of stores) await store.free()
            await Promise.all(hit.map((server) => server.stop()))
            await start(hit)
          }
        }
      }
    }
  }
}

/** The server is frozen while it is copied: what it acknowledges later is not in the copy. */
const continueFromCopy = async ({ nats }: Context, server: NatsServer): Promise<void> => {
  server.freeze()
  const copy = await makeStore(nats.storeOf(server.name).kind, nats.newStoreFolder(server.name))
  await cp(server.storeFolder, copy.folder, { recursive: true })
  await copy.settle()
  await server.kill()
  await nats.replaceStore(server.name, copy)
}

const crashImage: Fault = {
  name: "crash image: continues from a copy of the files",
  nodes: [1, 3],
  plan: (random, { nodes }) => {
    const servers = pickServers(random, nodes)
    return {
      text: `crash image ${servers.text}`,
      holds: ["nats"],
      seconds: 0,
      begin: async (context): Promise<Ongoing> => {
        const hit = servers.of(context)
        await Promise.all(hit.map((server) => continueFromCopy(context, server)))
        return { mayRepeat: "all", end: () => start(hit) }
      }
    }
  }
}

export const diskFaults: ReadonlyArray<Fault> = [powerLoss, diskFull, crashImage]
