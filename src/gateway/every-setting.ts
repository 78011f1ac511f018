// Reads settings one by one, so that a start that fails names every fault at once and not only the first.
import { type Config, Effect, Schema } from "effect"

/** The service cannot start with these settings; the message has one line for each. */
export class SettingsFault extends Schema.TaggedError<SettingsFault>()("SettingsFault", { message: Schema.String }) {}

type Values<C> = { readonly [K in keyof C]: C[K] extends Config.Config<infer A> ? A : never }

/** `ConfigError(SchemaError(Expected ... at ["NAME"]))` as a sentence. */
const sentence = ({ message }: Config.ConfigError): string => {
  const [, expected = message, name = ""] = /^(?:SchemaError\()?([\s\S]*?)\s+at (\[.*\])\)?$/.exec(message) ?? []
  return `${name.replace(/^\["|"\]$/g, "")}: ${expected}`
}

export const everySetting = Effect.fnUntraced(function* <C extends Readonly<Record<string, Config.Config<unknown>>>>(configs: C) {
  const values: Record<string, unknown> = {}
  const faults: Array<string> = []
  for (const [key, config] of Object.entries(configs)) {
    const result = yield* Effect.result(config)
    if (result._tag === "Success") values[key] = result.success
    else faults.push(sentence(result.failure))
  }
  if (faults.length > 0) return yield* new SettingsFault({ message: `Settings that cannot be used:\n${faults.join("\n")}` })
  return values as Values<C>
})
