// How verbs reach NATS: the flags they share, the connection, and one line instead of a stack when that fails.
import { Config, Console, Effect, Layer, Logger, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import type { AppendConflict, LogUnavailable } from "#log/errors.ts"
import { logLayer } from "#log/layer.ts"

export const natsFlags = {
  nats: Flag.String("nats").pipe(
    Flag.withDescription("NATS servers, comma-separated (BELLCAST_NATS_URL)"),
    Flag.withFallbackConfig(Config.String("BELLCAST_NATS_URL").pipe(Config.withDefault("nats://127.0.0.1:4222")))
  ),
  creds: Flag.String("creds").pipe(
    Flag.withDescription("NATS credentials file (BELLCAST_NATS_CREDS)"),
    Flag.withFallbackConfig(Config.String("BELLCAST_NATS_CREDS")),
    Flag.optional
  )
}

export interface NatsFlags {
  readonly nats: string
  readonly creds: Option.Option<string>
}

/** A verb cannot go on; the message is for whoever typed it. */
export class VerbFailed extends Schema.TaggedError<VerbFailed>()("VerbFailed", { message: Schema.String }) {}

/** Without the password that may stand in a URL. */
const bare = (url: string) => url.replace(/\/\/[^@/]*@/g, "//")

const reasonOf = ({ cause }: LogUnavailable) => (cause instanceof Error ? cause.message : String(cause))

const inWords = (url: string, error: LogUnavailable | AppendConflict | VerbFailed): string => {
  if (error._tag === "VerbFailed") return error.message
  if (error._tag === "AppendConflict") return `somebody else writes to ${error.subject}`
  if (error.operation === "connect")
    return `no answer from NATS at ${bare(url)} (${reasonOf(error)}): is the service running, and is --nats right?`
  return `NATS at ${bare(url)} failed (${error.operation}: ${reasonOf(error)})`
}

// Standard output holds answers only.
const toStderr = Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])

/** Runs a verb with a connection of its own. A failure is printed as one line, and the process then exits with 1. */
export const onNats =
  ({ creds, nats }: NatsFlags) =>
  <A, R>(verb: Effect.Effect<A, LogUnavailable | AppendConflict | VerbFailed, R>) =>
    verb.pipe(
      Effect.provide(logLayer({ url: nats, credsFile: Option.getOrUndefined(creds), name: "bellcast cli" })),
      Effect.tapError((error) => Console.error(`bellcast: ${inWords(nats, error)}`)),
      Effect.provide(Layer.fresh(toStderr))
    )
