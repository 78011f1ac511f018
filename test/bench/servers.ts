// The servers of a bench: nats-server, whose CPU time is read from its process, so no container;
// and a push service that only counts.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { launch } from "#embedded/launch.ts"
import { locateNatsServer } from "#embedded/program/locate.ts"
import { spawnPushService } from "../support/spawn-push-service.ts"

/** Starts nats-server on a folder of its own, which `stop` removes. */
export const startNats = async () => {
  const folder = mkdtempSync(join(tmpdir(), "bellcast-bench-"))
  const binary = await Effect.runPromise(locateNatsServer)
  const server = await launch({ binary, folder })
  return {
    ...server,
    binary,
    folder,
    stop: async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Starts a push service over HTTP/2 that decrypts nothing. */
export const startSink = () =>
  spawnPushService({ tls: true, http2: true, decrypt: false, host: "localhost" })
