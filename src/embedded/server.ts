// The embedded nats-server as a scoped resource: runs when BELLCAST_NATS_URL is unset.
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { type LaunchOptions, launch } from "./launch.ts"
import { locateNatsServer } from "./locate.ts"

export class EmbeddedServerFailed extends Schema.TaggedError<EmbeddedServerFailed>()(
  "EmbeddedServerFailed",
  { message: Schema.String }
) {}

/**
 * Starts a server on this folder. It is stopped (TERM, after 5 s KILL) when the scope closes or
 * this process dies.
 */
export const startServer = (options: LaunchOptions) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => launch(options),
      catch: (error) =>
        new EmbeddedServerFailed({
          message: error instanceof Error ? error.message : String(error)
        })
    }),
    (server) => Effect.promise(() => server.stop())
  )

/** The default port of NATS clients, so that the `nats` command finds the server. */
const portWanted = 4222

/** Finds or fetches nats-server and starts it on this data folder. */
export const embeddedServer = Effect.fn("embedded.server")(function* (dataDir: string) {
  const binary = yield* locateNatsServer
  return yield* startServer({
    binary,
    folder: join(dataDir, "nats"),
    port: portWanted,
    login: true
  })
})
