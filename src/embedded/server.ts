// The embedded nats-server as a scoped resource: runs when BELLCAST_NATS_URL is unset.
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { folderAt } from "./folder.ts"
import { type LaunchOptions, launch, stopTimeoutMillis } from "./launch.ts"
import { locateNatsServer } from "./program/locate.ts"

export class EmbeddedServerFailed extends Schema.TaggedError<EmbeddedServerFailed>()(
  "EmbeddedServerFailed",
  { message: Schema.String }
) {}

/** How a server ended. */
export interface Ended {
  readonly code?: number
  /** Why a restart failed. */
  readonly reason?: string
}

export interface EmbeddedServer {
  /** Contains the password: never log it. The same after a restart. */
  readonly url: string
  readonly pid: number
  readonly folder: string
  readonly logFile: string
  /** Resolves when the server has ended, but not when it is restarted. */
  readonly ended: Promise<Ended>
  /** Stops the server and starts it on the same port. If it does not start, it has ended. */
  readonly restart: () => Promise<void>
  readonly stop: () => Promise<void>
}

const startRestartable = async (options: LaunchOptions): Promise<EmbeddedServer> => {
  let server = await launch(options)
  const { port, url } = server
  const ended = Promise.withResolvers<Ended>()
  let isRestarting = false
  const watch = () =>
    server.exited.then((code) => {
      if (!isRestarting) ended.resolve({ code })
    })
  void watch()
  const restart = async () => {
    isRestarting = true
    await server.stop()
    server = await launch({ ...options, port })
    if (server.port !== port) throw new Error(`port ${port} was taken while it was down`)
    isRestarting = false
    void watch()
  }
  const { log, root } = folderAt(options.folder)
  return {
    url,
    get pid() {
      return server.pid
    },
    folder: root,
    logFile: log,
    ended: ended.promise,
    restart: () => restart().catch((error) => ended.resolve({ reason: String(error) })),
    stop: () => server.stop()
  }
}

/**
 * Starts a server on this folder. It is stopped (TERM, after 5 s KILL) when the scope closes or
 * this process dies.
 */
export const startServer = (options: LaunchOptions) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => startRestartable(options),
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
  const run = Effect.runForkWith(yield* Effect.context())
  const waiting =
    "another embedded nats-server uses the data folder: " +
    `waiting up to ${stopTimeoutMillis / 1000} s in case its service is being stopped`
  return yield* startServer({
    binary,
    folder: join(dataDir, "nats"),
    port: portWanted,
    login: true,
    waits: () => run(Effect.logInfo(waiting)),
    recovers: (seconds) => run(Effect.logInfo(`nats-server recovers its streams: ${seconds} s`))
  })
})
