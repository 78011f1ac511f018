// How verbs reach NATS: the flags they share, the connection, and one line instead of a stack when that fails.
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Config, Effect, Logger, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { settings } from "#config"
import { addressIn, folderAt, released } from "#embedded/folder.ts"
import { embeddedServer } from "#embedded/server.ts"
import type { AppendConflict, LogUnavailable } from "#log/errors.ts"
import { logLayer } from "#log/layer.ts"
import { hostsOf } from "#log/nats.ts"
import { natsUrlFault } from "#settings/nats-url.ts"
import { note } from "./note.ts"

export const natsFlags = {
  nats: Flag.String("nats").pipe(
    Flag.withDescription(
      "NATS servers, comma-separated (BELLCAST_NATS_URL); unset: the embedded one, else port 4222 of this machine"
    ),
    Flag.withFallbackConfig(Config.String("BELLCAST_NATS_URL")),
    Flag.optional
  ),
  creds: Flag.String("creds").pipe(
    Flag.withDescription("NATS credentials file (BELLCAST_NATS_CREDS)"),
    Flag.withFallbackConfig(Config.String("BELLCAST_NATS_CREDS")),
    Flag.optional
  )
}

export interface NatsFlags {
  readonly nats: Option.Option<string>
  readonly creds: Option.Option<string>
}

const urlDefault = "nats://127.0.0.1:4222"

/** A verb cannot go on; the message is for whoever typed it. */
export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", {
  message: Schema.String
}) {}

const reasonOf = ({ cause }: LogUnavailable) =>
  cause instanceof Error ? cause.message : String(cause)

const inWords = (url: string, error: LogUnavailable | AppendConflict | VerbFailed): string => {
  if (error._tag === "VerbFailed") return error.message
  if (error._tag === "AppendConflict") return `somebody else writes to ${error.subject}`
  if (error.operation === "connect")
    return `no answer from NATS at ${hostsOf(url)} (${reasonOf(error)}): is the service running, and is --nats right?`
  return `NATS at ${hostsOf(url)} failed (${error.operation}: ${reasonOf(error)})`
}

// Standard output holds answers only.
const toStderr = Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])

/** Where NATS is. `startIt`: when that is the embedded server and it does not run, it runs until the scope ends. */
const urlOf = Effect.fnUntraced(function* (given: Option.Option<string>, startIt: boolean) {
  if (Option.isSome(given)) {
    const fault = natsUrlFault(given.value)
    if (fault !== undefined)
      return yield* new VerbFailed({ message: `--nats or BELLCAST_NATS_URL: ${fault}` })
    return given.value
  }
  const dataDir = yield* Effect.orDie(settings.dataDir)
  const folder = folderAt(join(dataDir, "nats"))
  if (startIt && existsSync(folder.store) && (yield* Effect.promise(() => released(folder, 0)))) {
    const server = embeddedServer(dataDir).pipe(
      Effect.mapError((error) => new VerbFailed({ message: error.message }))
    )
    return (yield* server).url
  }
  return (yield* Effect.promise(() => addressIn(folder)))?.url ?? urlDefault
})

/** Runs a verb with a connection of its own. A failure is printed as one line, and the process then exits with 1. */
export const onNats =
  ({ creds, nats }: NatsFlags, { startIt } = { startIt: false }) =>
  <A, R>(verb: Effect.Effect<A, LogUnavailable | AppendConflict | VerbFailed, R>) =>
    Effect.gen(function* () {
      const url = yield* urlOf(nats, startIt)
      return yield* verb.pipe(
        Effect.provide(
          logLayer({ url, credsFile: Option.getOrUndefined(creds), name: "bellcast cli" })
        ),
        Effect.mapError((error) => new VerbFailed({ message: inWords(url, error) }))
      )
    }).pipe(
      Effect.scoped,
      Effect.tapError(({ message }) => note(message)),
      Effect.provide(toStderr)
    )
