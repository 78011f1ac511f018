// A cluster of three real nats-servers on this machine.
import { startConfiguredNats } from "./nats-configured.ts"
import { claimPort } from "./ports.ts"

const members = ["a", "b", "c"] as const

interface ClusterOptions {
  /** Of each server. */
  readonly storage?: string
  /** Further lines of each configuration, and the variables that they name. */
  readonly lines?: string
  readonly env?: Readonly<Record<string, string>>
  /** False: clients do not learn of servers that they are not given. */
  readonly advertises?: boolean
  /** Where each server stores, also over a restart. Unset: in a folder that its end removes. */
  readonly folders?: ReadonlyArray<string>
}

/** Servers of a cluster that do not run yet. `start` begins one and returns before it has peers. */
export const makeNatsCluster = async (options: ClusterOptions = {}) => {
  const { advertises = true, env = {}, folders, lines = "", storage = "20GB" } = options
  const ports = await Promise.all(members.map(claimPort))
  const routes = await Promise.all(members.map(claimPort))
  const start = (n: number) =>
    startConfiguredNats(
      ports[n]!,
      [
        `server_name: ${members[n]}`,
        `jetstream { max_file_store: ${storage}, sync_interval: 2m }`,
        `cluster { name: test, no_advertise: ${!advertises}, listen: "127.0.0.1:${routes[n]}"`,
        `  routes: [${routes.map((route) => `"nats-route://127.0.0.1:${route}"`).join(", ")}] }`,
        lines
      ].join("\n"),
      env,
      folders?.[n]
    )
  return { start, ports, urls: ports.map((port) => `nats://127.0.0.1:${port}`) }
}

/** Three servers that run. Their leaders are elected some seconds later. */
export const startNatsCluster = async (storage?: string) => {
  const { start, urls } = await makeNatsCluster(storage === undefined ? {} : { storage })
  const servers = await Promise.all(urls.map((_, n) => start(n)))
  return {
    urls,
    /** SIGKILL; resolves when the server is gone, and its store. */
    kill: (n: number) => servers[n]![Symbol.asyncDispose](),
    [Symbol.asyncDispose]: async () => {
      await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()))
    }
  }
}
