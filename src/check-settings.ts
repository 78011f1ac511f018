// Looks at every setting of every stage before anything starts: one message names all that is wrong.
import { Effect, Layer, Option } from "effect"
import { Settings, type SettingsShape, settings } from "#config"
import { gatewaySettings } from "#gateway/settings.ts"
import { Secrets } from "#secrets/secrets.ts"
import { namesOf, readEvery, settingsFault } from "#settings/every-setting.ts"
import { natsTlsFault, natsTlsFiles } from "#settings/nats-url.ts"
import { developmentFlag, Source } from "#settings/source.ts"
import { strangersOf } from "#settings/unknown-settings.ts"

const askedBySecrets = [
  "natsUrl",
  "roles",
  "useridHmacSecret",
  "vapidPublicKey",
  "vapidPrivateKey",
  "vapidFormerKeys",
  "vapidSubject"
] as const

/** Beside an existing server secrets are only looked at, never made, so what is wrong with them can be told with the rest. */
const secretsFaults = Effect.fnUntraced(function* (values: Partial<SettingsShape>) {
  const known = askedBySecrets.every((key) => Object.hasOwn(values, key))
  if (!known || Option.isNone(values.natsUrl!)) return []
  const result = yield* Effect.result(
    Layer.build(Secrets.layer).pipe(
      Effect.provideService(Settings, values as SettingsShape),
      Effect.scoped
    )
  )
  return result._tag === "Success" ? [] : [result.failure.message]
})

/** Faults between NATS settings that are right one by one. */
const natsFaults = ({ natsTls, natsUrl }: Partial<SettingsShape>): ReadonlyArray<string> => {
  if (natsUrl === undefined || natsTls === undefined) return []
  const fault = natsTlsFault(Option.getOrUndefined(natsUrl), natsTlsFiles(natsTls))
  return fault === undefined ? [] : [fault]
}

/** Every process checks all settings, also those of stages it does not run: whichever starts first tells. */
export const checkSettings = Effect.gen(function* () {
  const source = yield* Source
  const own = yield* readEvery(settings)
  const gateway = yield* readEvery(gatewaySettings)
  const strangers = strangersOf(source, [...namesOf(settings), ...namesOf(gatewaySettings)])
  for (const warning of strangers.warnings) yield* Effect.logWarning(warning)
  const secrets = yield* secretsFaults(own.values)
  const args = process.argv.slice(2).filter((arg) => arg !== developmentFlag)
  const unknown = args.map(
    (arg) =>
      `${JSON.stringify(arg)}: The only argument is ${developmentFlag}; settings come from BELLCAST_<NAME> or a file`
  )
  const faults = [
    ...unknown,
    ...source.faults,
    ...own.faults,
    ...gateway.faults,
    ...natsFaults(own.values),
    ...strangers.faults,
    ...secrets
  ]
  if (faults.length > 0) return yield* settingsFault(faults)
})
