// Why the service cannot start, as a log line: words for what an operator can correct, the stack
// for a bug.
import { Cause, Effect } from "effect"

/** Errors whose message says what to do. */
const explained: ReadonlySet<string> = new Set([
  "SettingsError",
  "SecretsFault",
  "NatsServerMissing",
  "EmbeddedServerFailed",
  "BucketsMissing"
])

interface StartError {
  readonly _tag?: string
  readonly message?: string
  readonly operation?: string
  readonly cause?: Error
}

const reasonOf = ({ _tag = "", cause, message, operation }: StartError): string | undefined => {
  if (explained.has(_tag)) return message
  if (_tag === "ServeError")
    return `HTTP cannot be served: ${cause?.message} (BELLCAST_HOST, BELLCAST_PORT)`
  if (_tag === "NatsUnavailable")
    return `NATS cannot be used (${operation}): ${cause?.message} (BELLCAST_NATS_URL)`
  return undefined
}

/** Logs a failed start. */
export const logStartFailure = (cause: Cause.Cause<unknown>) => {
  const reason = reasonOf(Cause.squash(cause) as StartError)
  return reason === undefined
    ? Effect.logFatal("cannot start", cause)
    : Effect.logFatal(`cannot start. ${reason}`)
}
