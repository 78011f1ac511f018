// The embedded nats-server of this process: the process ends with it, and restarts it when it
// stores nothing any more. Its folder notes which policies its users come from.
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { folderAt } from "#embedded/folder.ts"
import { revive } from "#embedded/revive.ts"
import { type EmbeddedServer, EmbeddedServerFailed, embeddedServer } from "#embedded/server.ts"
import { ServerHealth } from "#nats/watch/server-health.ts"
import { replace } from "#secrets/once.ts"
import { settingsFault } from "#settings/every-setting.ts"
import { developmentFlag, type Found, Source, verifyNobody } from "#settings/source.ts"

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

/** Restarts the embedded nats-server, if there is one, when it stores nothing any more. */
export const revivedLayer = (embedded: Option.Option<EmbeddedServer>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const health = yield* ServerHealth
      if (Option.isSome(embedded))
        yield* revive(embedded.value, () => health.trouble() !== undefined)
    })
  )
