// Why the service cannot start, as a log line: words for what an operator can correct, the stack
// for a bug.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { NotBuilt } from "#browser/serving/files.ts"
import { NatsServerMissing } from "#embedded/program/locate.ts"
import { EmbeddedServerFailed } from "#embedded/server.ts"
import { ServeError } from "#gateway/serve.ts"
import { MetricsPortError } from "#monitoring/port.ts"
import { NatsUnavailable, NoStorage, StartRefused } from "#nats/connection/errors.ts"
import { SecretsFault } from "#secrets/file.ts"
import { SettingsError } from "#settings/every-setting.ts"

/** Text of the error below an error. */
const causeOf = ({ cause }: { readonly cause: unknown }): string =>
  cause instanceof Error ? cause.message : String(cause)

/** Undefined: a bug, or nothing that an operator can correct. */
const reasonOf = (error: unknown): string | undefined => {
  if (
    error instanceof SettingsError ||
    error instanceof SecretsFault ||
    error instanceof NatsServerMissing ||
    error instanceof EmbeddedServerFailed ||
    error instanceof StartRefused ||
    error instanceof NoStorage ||
    error instanceof NotBuilt
  )
    return error.message
  if (error instanceof ServeError)
    return `HTTP cannot be served: ${causeOf(error)} (BELLCAST_HOST, BELLCAST_PORT)`
  if (error instanceof MetricsPortError)
    return `The metrics port cannot be opened: ${causeOf(error)} (BELLCAST_METRICS_ADDRESS)`
  if (error instanceof NatsUnavailable && error.reason._tag === "NotReady") return causeOf(error)
  if (error instanceof NatsUnavailable)
    return `NATS cannot be used (${error.operation}): ${causeOf(error)} (BELLCAST_NATS_URL)`
  return undefined
}

/** Logs a failed start. */
export const logStartFailure = (cause: Cause.Cause<unknown>) => {
  const reason = reasonOf(Cause.squash(cause))
  return reason === undefined
    ? Effect.logFatal("cannot start", cause)
    : Effect.logFatal(`cannot start. ${reason}`)
}
