// A start that cannot be. Every setting of every stage is checked before anything starts, and one
// message names all that is wrong. Any other failure is logged in words for what an operator can
// correct, and with the stack for a bug.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { proxyFault } from "#basics/outgoing.ts"
import { NotBuilt } from "#browser/serving/files.ts"
import { placeOf } from "#children/messages.ts"
import { Settings, type SettingsShape, settings } from "#config"
import { NatsServerMissing } from "#embedded/program/locate.ts"
import { EmbeddedServerFailed } from "#embedded/server.ts"
import { ServeError } from "#gateway/server/server.ts"
import { gatewaySettings } from "#gateway/settings.ts"
import { kinds, policyOfSetting } from "#identity/kinds.ts"
import { identitySettings, kindOf, policyListFaults, settingPrefix } from "#identity/settings.ts"
import { MetricsPortError } from "#monitoring/port.ts"
import { NatsUnavailable, NoStorage, StartRefused } from "#nats/connection/errors.ts"
import { SecretsFault } from "#secrets/file.ts"
import { Secrets } from "#secrets/secrets.ts"
import { natsTlsFault, natsTlsFiles } from "#settings/addresses.ts"
import {
  namesOf,
  readEvery,
  SettingsError,
  settingsFault,
  unknownSettings,
  type Values
} from "#settings/every-setting.ts"
import { developmentFlag, Source } from "#settings/source.ts"

/** Fails with one line for each wrong setting, also of stages that this process does not run. */
export const checkSettings = Effect.gen(function* () {
  const source = yield* Source
  const own = yield* readEvery(settings)
  const gateway = yield* readEvery(gatewaySettings)
  const identity = yield* identityFaults(own.values)
  const names = [...namesOf(settings), ...namesOf(gatewaySettings), ...identity.names]
  const unknown = unknownSettings(source, names, policyOfSetting)
  for (const warning of unknown.warnings) yield* Effect.logWarning(warning)
  const secrets = yield* secretsFaults(own.values)
  const given = process.argv.slice(2)
  const args = placeOf(given) === undefined ? given.filter((arg) => arg !== developmentFlag) : []
  const argumentFaults = args.map(
    (arg) =>
      `${JSON.stringify(arg)}: The only argument is ${developmentFlag}; ` +
      "settings come from BELLCAST_<NAME> or a file"
  )
  const proxy = proxyFault(process.env)
  const faults = [
    ...argumentFaults,
    ...(proxy === undefined ? [] : [proxy]),
    ...source.faults,
    ...own.faults,
    ...gateway.faults,
    ...identity.faults,
    ...proxyFaults(identity.proxies, gateway.values.trustedProxies),
    ...consoleFaults(gateway.values),
    ...natsFaults(own.values),
    ...unknown.faults,
    ...secrets
  ]
  if (faults.length > 0) return yield* settingsFault(faults)
})

/** The faults of the policies and of the settings of each, and the names of these settings. */
const identityFaults = Effect.fnUntraced(function* ({ roles }: Partial<SettingsShape>) {
  const { faults, values } = yield* readEvery(identitySettings)
  const policies = values.authPolicies ?? []
  const ours = policies.flatMap(({ module, name }) =>
    module === undefined ? [{ name, kind: kindOf(name)! }] : []
  )
  const read = yield* Effect.forEach(ours, ({ kind, name }) => kinds[kind].faults(name))
  const tables = ours.map(({ kind, name }) => kinds[kind].settings(settingPrefix(name)))
  const isNeeded = values.authPolicies !== undefined && (roles?.includes("gateway") ?? false)
  return {
    faults: [...faults, ...policyListFaults(policies, isNeeded), ...read.flat()],
    names: [identitySettings, ...tables].flatMap(namesOf),
    proxies: ours.flatMap(({ kind, name }) => (kind === "proxy" ? [name] : []))
  }
})

/** The headers of a proxy count from trusted addresses only: without one nobody is a user. */
const proxyFaults = (
  proxies: ReadonlyArray<string>,
  trusted: ReadonlyArray<string> | undefined
): ReadonlyArray<string> =>
  trusted?.length === 0
    ? proxies.map(
        (name) =>
          `BELLCAST_TRUSTED_PROXIES: Expected the address of the proxy of the policy ${name}`
      )
    : []

/** An origin that may call has pages of a site, of which a hole would be a publisher's. */
const consoleFaults = ({
  consoleOrigin = Option.none(),
  corsOrigins = []
}: Partial<Values<typeof gatewaySettings>>): ReadonlyArray<string> =>
  Option.isSome(consoleOrigin) && corsOrigins.some((each) => each === consoleOrigin.value)
    ? [
        "BELLCAST_CONSOLE_ORIGIN: Expected a host of the console's own, not one of " +
          "BELLCAST_CORS_ORIGINS, whose pages are a site's"
      ]
    : []

/** Contradictions between NATS settings that are each valid. */
const natsFaults = ({ natsTls, natsUrl }: Partial<SettingsShape>): ReadonlyArray<string> => {
  if (natsUrl === undefined || natsTls === undefined) return []
  const fault = natsTlsFault(Option.getOrUndefined(natsUrl), natsTlsFiles(natsTls))
  return fault === undefined ? [] : [fault]
}

const settingsOfSecrets = [
  "natsUrl",
  "roles",
  "useridHmacSecret",
  "vapidPublicKey",
  "vapidPrivateKey",
  "vapidFormerKeys",
  "vapidSubject"
] as const

/**
 * Returns the faults of the secrets. They are not checked beside an embedded server, where a check
 * would make them.
 */
const secretsFaults = Effect.fnUntraced(function* (values: Partial<SettingsShape>) {
  const known = settingsOfSecrets.every((key) => Object.hasOwn(values, key))
  if (!known || Option.isNone(values.natsUrl!)) return []
  const result = yield* Effect.result(
    Layer.build(Secrets.layer).pipe(
      Effect.provideService(Settings, values as SettingsShape),
      Effect.scoped
    )
  )
  return result._tag === "Success" ? [] : [result.failure.message]
})

/** Logs a failed start. */
export const logStartFailure = (cause: Cause.Cause<unknown>) => {
  const reason = reasonOf(Cause.squash(cause))
  return reason === undefined
    ? Effect.logFatal("cannot start", cause)
    : Effect.logFatal(`cannot start. ${reason}`)
}

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

/** Text of the error below an error. */
const causeOf = ({ cause }: { readonly cause: unknown }): string =>
  cause instanceof Error ? cause.message : String(cause)
