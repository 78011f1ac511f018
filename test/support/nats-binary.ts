// A nats-server of this machine, found as the service finds it, on a temporary folder.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import type { StartNats } from "./nats.ts"

/** Names the folder for the folders of servers. Unset: the one for temporary files. */
export const storeVariable = "BELLCAST_TEST_NATS_STORE"

let found: Promise<string> | undefined

export const startNatsBinary: StartNats = async (syncInterval) => {
  found ??= Effect.runPromise(locateNatsServer)
  const binary = await found
  const folder = await mkdtemp(join(process.env[storeVariable] ?? tmpdir(), "bellcast-nats-"))
  let server = await launch({ binary, folder, syncInterval })
  const { port, url } = server
  return {
    url,
    folder,
    kill: async () => {
      process.kill(server.pid, "SIGKILL")
      await server.exited
    },
    restart: async () => {
      await server.stop()
      server = await launch({ binary, folder, port, syncInterval })
      if (server.port !== port) throw new Error(`port ${port} was taken while the server was down`)
    },
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    }
  }
}
