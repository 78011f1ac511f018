// A nats-server of our own, for as long as the scope lives: what runs when no BELLCAST_NATS_URL is given.
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { type LaunchOptions, launch } from "./launch.ts"
import { locateNatsServer } from "./locate.ts"

export class EmbeddedServerFailed extends Schema.TaggedError<EmbeddedServerFailed>()(
  "EmbeddedServerFailed",
  { message: Schema.String }
) {}

/** Starts a server on this folder; stopped (TERM, then KILL after 5 s) when the scope closes, or when this process dies. */
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

/** The port that NATS clients try first, so that a terminal beside the service needs no address. */
const portWanted = 4222

/** The server of this data folder: found or fetched, then started. */
export const embeddedServer = Effect.fn("embedded.server")(function* (dataDir: string) {
  const binary = yield* locateNatsServer
  return yield* startServer({
    binary,
    folder: join(dataDir, "nats"),
    port: portWanted,
    login: true
  })
})
