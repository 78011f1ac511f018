// The nats-servers of a run: one, or a cluster of three. Every link of theirs passes through a
// proxy, and every server keeps its files on a store of its own.
import { cp } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { claimPort } from "../../support/ports.ts"
import type { NatsServers, NatsServersOptions, StoreKind } from "./fault.ts"
import { areHealthy } from "./nats-monitor.ts"
import { NatsProcess, type Ports } from "./nats-process.ts"
import { makeStore, type Store } from "./store.ts"
import { TcpProxy } from "./tcp-proxy.ts"

export interface StartOptions extends NatsServersOptions {
  /** `always` (the default), or how long the servers may wait until they sync: `2m`. */
  readonly syncInterval?: string
  /** Kind of the first stores: `plain` when left out. */
  readonly store?: StoreKind
}

/** The proxies that a server dials the others through. */
interface Route {
  readonly from: string
  readonly to: string
  readonly proxy: TcpProxy
}

const startRoutes = async (
  names: ReadonlyArray<string>,
  ports: ReadonlyArray<Ports>
): Promise<ReadonlyArray<Route>> => {
  const routes: Array<Route> = []
  for (const from of names)
    for (const [index, to] of names.entries())
      if (from !== to) routes.push({ from, to, proxy: await TcpProxy.start(ports[index]!.cluster) })
  return routes
}

class Servers implements NatsServers {
  readonly servers: ReadonlyArray<NatsProcess>
  readonly #folder: string
  readonly #stores: Map<string, Store>
  readonly #routes: ReadonlyArray<Route>
  readonly #memberLinks = new Map<string, Promise<ReadonlyArray<TcpProxy>>>()
  readonly #ports: ReadonlyArray<Ports>
  #storesMade = 0

  constructor(
    folder: string,
    servers: ReadonlyArray<NatsProcess>,
    ports: ReadonlyArray<Ports>,
    routes: ReadonlyArray<Route>,
    stores: Map<string, Store>
  ) {
    this.#folder = folder
    this.servers = servers
    this.#ports = ports
    this.#routes = routes
    this.#stores = stores
  }

  get nodes() {
    return this.servers.length === 1 ? 1 : 3
  }

  get directUrl(): string {
    return this.servers.map(({ url }) => url).join(",")
  }

  get logFiles(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.servers.map(({ name, logFile }) => [name, logFile]))
  }

  async urlFor(member: string): Promise<string> {
    const links = await this.linksOf(member)
    return links.map(({ port }) => `nats://127.0.0.1:${port}`).join(",")
  }

  linksOf(member: string): Promise<ReadonlyArray<TcpProxy>> {
    const links =
      this.#memberLinks.get(member) ??
      Promise.all(this.#ports.map(({ client }) => TcpProxy.start(client)))
    this.#memberLinks.set(member, links)
    return links
  }

  linksBetween(one: string, other: string): readonly [TcpProxy, TcpProxy] {
    const dialled = (dialling: string, target: string) =>
      this.#routes.find(({ from, to }) => from === dialling && to === target)!.proxy
    return [dialled(one, other), dialled(other, one)]
  }

  storeOf(server: string): Store {
    return this.#stores.get(server)!
  }

  async replaceStore(name: string, store: Store): Promise<void> {
    const former = this.storeOf(name)
    this.#stores.set(name, store)
    this.servers.find((server) => server.name === name)!.storeFolder = store.folder
    await former.remove()
  }

  newStoreFolder(name: string): string {
    return join(this.#folder, `store-${name}-${++this.#storesMade}`)
  }

  async useStore(kind: StoreKind): Promise<void> {
    if (this.servers.every(({ name }) => this.storeOf(name).kind === kind)) return
    await Promise.all(this.servers.map((server) => server.stop()))
    for (const { name } of this.servers) {
      const store = await makeStore(kind, this.newStoreFolder(name))
      await cp(this.storeOf(name).folder, store.folder, { recursive: true })
      await store.settle()
      await this.replaceStore(name, store)
    }
    await Promise.all(this.servers.map((server) => server.start()))
  }

  readonly isHealthy = (): Promise<boolean> => areHealthy(this.servers)

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()))
    const links = await Promise.all(this.#memberLinks.values())
    for (const proxy of [...links.flat(), ...this.#routes.map(({ proxy }) => proxy)])
      await proxy[Symbol.asyncDispose]()
    for (const store of this.#stores.values()) await store.remove()
  }
}

/** Resolves when all take connections. A cluster elects its leaders after that: `isHealthy`. */
export const startNatsServers = async (options: StartOptions): Promise<NatsServers> => {
  const { nodes, folder, syncInterval = "always", store: kind = "plain" } = options
  const binary = await Effect.runPromise(locateNatsServer)
  const names = nodes === 1 ? ["n1"] : ["n1", "n2", "n3"]
  const ports: Array<Ports> = []
  for (const _ of names)
    ports.push({
      client: await claimPort(),
      cluster: await claimPort(),
      monitor: await claimPort()
    })
  const routes = await startRoutes(names, ports)
  const stores = new Map<string, Store>()
  for (const name of names) stores.set(name, await makeStore(kind, join(folder, `store-${name}`)))
  const processes = names.map(
    (name, index) =>
      new NatsProcess({
        name,
        binary,
        folder,
        ports: ports[index]!,
        routes: routes.filter(({ from }) => from === name).map(({ proxy }) => proxy.port),
        syncInterval,
        storeFolder: stores.get(name)!.folder
      })
  )
  const servers = new Servers(folder, processes, ports, routes, stores)
  try {
    await Promise.all(processes.map((server) => server.start()))
  } catch (error) {
    await servers[Symbol.asyncDispose]()
    throw error
  }
  return servers
}
