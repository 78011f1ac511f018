// The embedded nats-server of this process, where BELLCAST_NATS_URL is unset. The process ends with
// it. After an error of the disk, nats-server itself does not try again: it is restarted once its
// disk has space. Its folder notes which policies its users come from.
import { readFile, statfs } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { monotonicMillis } from "#clock/clocks.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"
import { replace } from "#secrets/whole-file.ts"
import { settingsFault } from "#settings/every-setting.ts"
import { developmentFlag, type Found, Source, verifyNobody } from "#settings/source.ts"
import { makeRateLimitedLog } from "#telemetry/rate-limited-log.ts"
import { folderAt } from "./folder.ts"
import { type LaunchOptions, launch, stopTimeoutMillis } from "./launch.ts"
import { locateNatsServer } from "./program/locate.ts"

export class EmbeddedServerFailed extends Schema.TaggedError<EmbeddedServerFailed>()(
  "EmbeddedServerFailed",
  { message: Schema.String }
) {}

/** How a server ended. */
interface Ended {
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

/** Starts the embedded nats-server. If it ends, this process ends too. */
export const startEmbedded = Effect.fnUntraced(function* (
  dataDir: string,
  isStopping: () => boolean
) {
  const policies = (yield* Source).found.get("BELLCAST_AUTH_POLICIES")
  const { policies: note } = folderAt(join(dataDir, "nats"))
  yield* refuseOpening(note, policies)
  const server = yield* embeddedServer(dataDir)
  if (policies !== undefined) yield* notePolicies(note, policies.value)
  yield* Effect.forkScoped(endWith(server, isStopping))
  return server
})

const openAgain =
  "BELLCAST_AUTH_POLICIES: is not set, although the last start on this data folder verified " +
  "users: everybody would be a user, and publish to them. Put the settings of that start back " +
  "(.env), use another BELLCAST_DATA_DIR, or let everybody in: BELLCAST_AUTH_POLICIES=basicauth"

/** Refuses the policies of `--development`, which nobody set, for data of verified users. */
const refuseOpening = Effect.fnUntraced(function* (note: string, policies: Found | undefined) {
  if (policies?.place !== developmentFlag) return
  const former = yield* Effect.promise(() => readFile(note, "utf8").catch(() => ""))
  if (!verifyNobody(former)) return yield* settingsFault([openAgain])
})

/** Notes the policies for the next start. */
const notePolicies = (note: string, policies: string) =>
  Effect.tryPromise({
    try: () => replace(note, `${policies}\n`),
    catch: (error) =>
      new EmbeddedServerFailed({
        message: `${note} (the policies of this start) could not be written: ${error}`
      })
  })

/**
 * Ends this process when the server has ended. While a stop is under way the drain goes on, which
 * stop.ts bounds: systemd may have stopped both processes at once.
 */
export const endWith = (
  { ended }: Pick<EmbeddedServer, "ended">,
  isStopping: () => boolean,
  exit: () => void = () => process.exit(1)
) =>
  Effect.flatMap(
    Effect.promise(() => ended),
    (how) =>
      isStopping()
        ? Effect.logWarning("the embedded nats-server has ended before this process did", how)
        : Effect.andThen(
            Effect.logFatal("the embedded nats-server has ended", how),
            Effect.sync(exit)
          )
  )

/** The default port of NATS clients, so that the `nats` command finds the server. */
const portWanted = 4222

/** Finds or fetches nats-server and starts it on this data folder. */
export const embeddedServer = Effect.fn("embedded.server")(function* (dataDir: string) {
  const binary = yield* locateNatsServer
  const fork = Effect.runForkWith(yield* Effect.context())
  const waiting =
    "another embedded nats-server uses the data folder: " +
    `waiting up to ${stopTimeoutMillis / 1000} s in case its service is being stopped`
  return yield* startServer({
    binary,
    folder: join(dataDir, "nats"),
    port: portWanted,
    login: true,
    waits: () => fork(Effect.logInfo(waiting)),
    recovers: (seconds) => fork(Effect.logInfo(`nats-server recovers its streams: ${seconds} s`))
  })
})

/**
 * Starts a server on this folder. It is stopped (TERM, after 5 s KILL) when the scope closes or
 * this process dies.
 */
const startServer = (options: LaunchOptions) =>
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

/** Restarts the embedded nats-server, if there is one, when it stores nothing any more. */
export const revivedLayer = (embedded: Option.Option<EmbeddedServer>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const health = yield* ServerHealth
      if (Option.isSome(embedded))
        yield* revive(embedded.value, () => health.trouble() !== undefined)
    })
  )

/** With less, the disk would be full again at once. */
export const freeBytesMin = 64 * 1024 ** 2

/** A restart that does not help is not repeated for ever: the operator has to look. */
export const restartsMax = 5

const restartsMillis = 60 * 60_000

/** A restarted server has so long to recover its streams and to store again. */
export const settleMillis = 30_000

const everyMillis = 1_000

/** Watches the server until the scope closes. `isSilent`: whether it stores nothing. */
export const revive = Effect.fnUntraced(function* (
  server: EmbeddedServer,
  isSilent: () => boolean
) {
  const { folder, logFile } = server
  const restartedAt: Array<number> = []
  const look = Effect.gen(function* () {
    if (!isSilent()) return
    const now = yield* monotonicMillis
    const found = yield* freeBytesOf(folder)
    const freeBytes = found ?? 0
    const remedy = remedyOf(restartedAt, now, freeBytes)
    if (remedy === "needsSpace") {
      yield* needsSpace({ freeBytes: found ?? "unknown", freeBytesMin, folder })
    }
    if (remedy === "giveUp") yield* givenUp({ restarts: restartedAt.length, logFile })
    if (remedy !== "restart") return
    restartedAt.push(now)
    yield* restartOn(server, freeBytes)
  })
  yield* look.pipe(Effect.repeat(Schedule.spaced(everyMillis)), Effect.forkScoped)
})

/** The remedy for a server that stores nothing. `restartedAt`: earlier restarts, in order. */
export const remedyOf = (
  restartedAt: ReadonlyArray<number>,
  now: number,
  freeBytes: number
): "wait" | "giveUp" | "needsSpace" | "restart" => {
  if (now - (restartedAt.at(-1) ?? Number.NEGATIVE_INFINITY) < settleMillis) return "wait"
  if (restartedAt.filter((at) => now - at < restartsMillis).length >= restartsMax) return "giveUp"
  return freeBytes < freeBytesMin ? "needsSpace" : "restart"
}

const needsSpace = makeRateLimitedLog(
  "the embedded nats-server stores nothing: it is restarted when its disk has space again",
  Effect.logError
)

const givenUp = makeRateLimitedLog(
  "the embedded nats-server stores nothing, and restarts did not help: see its log",
  Effect.logError
)

/** Undefined: the disk cannot be asked, as it fails or is not mounted. */
const freeBytesOf = (folder: string) =>
  Effect.tryPromise(async () => {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  }).pipe(Effect.orElseSucceed(() => undefined))

const restartOn = (server: EmbeddedServer, freeBytes: number) =>
  Effect.logWarning("the embedded nats-server stores nothing: restarting it", { freeBytes }).pipe(
    Effect.andThen(Effect.promise(() => server.restart())),
    Effect.andThen(Effect.logInfo("the embedded nats-server was restarted")),
    // A half-done restart would leave the process without a server.
    Effect.uninterruptible
  )
