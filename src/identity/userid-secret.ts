// The secret from which user ids, pseudonyms and the keys of cached verdicts are derived.
import { Effect, Option, Redacted } from "effect"
import { Settings } from "#config"

export const useridSecret = Effect.map(Settings, ({ useridHmacSecret }) =>
  Option.match(useridHmacSecret, { onNone: () => "", onSome: Redacted.value })
)
