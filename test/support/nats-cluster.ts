// A cluster of three real nats-servers on this machine.
import { startConfiguredNats } from "./nats-configured.ts"
import { claimPort } from "./ports.ts"

const members = ["a", "b", "c"] as const

/**
 * Servers of a cluster that do not run yet. `start` begins one and returns before it has peers.
 * `storage`: of each server.
 */
export const makeNatsCluster = async (storage = "20GB") => {
  const ports = await Promise.all(members.map(claimPort))
  const routes = await Promise.all(members.map(claimPort))
  const start = (n: number) =>
    startConfiguredNats(
      ports[n]!,
      [
        `server_name: ${members[n]}`,
        `jetstream { max_file_store: ${storage}, sync_interval: 2m }`,
        `cluster { name: test, listen: "127.0.0.1:${routes[n]}"`,
        `  routes: [${routes.map((route) => `"nats-route://127.0.0.1:${route}"`).join(", ")}] }`
      ].join("\n")
    )
  return { start, urls: ports.map((port) => `nats://127.0.0.1:${port}`) }
}

/** Three servers that run. Their leaders are elected some seconds later. */
export const startNatsCluster = async (storage?: string) => {
  const { start, urls } = await makeNatsCluster(storage)
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
